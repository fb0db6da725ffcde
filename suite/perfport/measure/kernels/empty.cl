/* Does nothing: what is left is the launch. */
__kernel void empty(void) {}
