/* Descriptors through all levels of a tree, one kernel for every device. A team of work-items takes HELD of them through a level
   before the next. Which of a node's centres is the nearest is found by

     VECTOR   descent_vectors.cl   a work-item to a team, vectors along the dimensions: CPUs
     else     descent_team.cl      several work-items of one hardware thread to a team, dot products of four bytes

   Each of them defines

     DESCENT             what stands between __kernel and void
     Points, Centres     the words of which descriptors and centres are loaded
     TEAM                work-items of a team
     Team, TEAM_MEMORY   what a work-item knows of its team, and its declaration with that of local memory
     Descriptor, take    the part of a descriptor that a work-item holds
     nearest_of          called by all of a team, also where its descriptor is at a word (node == UINT_MAX): work-items may meet

   Nodes and words as the query module has them. Macros: K, DIMS, GROUP, HELD, DEPTH (of the tree), those of the two files. */
#if VECTOR
#include "descent_vectors.cl"
#else
#include "descent_team.cl"
#endif

__kernel DESCENT void descend(__global const Points *RESTRICT points, __global const Centres *RESTRICT centres,
                              __global const int *RESTRICT halves, __global const uint *RESTRICT children,
                              __global const uint *RESTRICT leaves, uint count, __global uint *RESTRICT words) {
    TEAM_MEMORY(team);
    const uint first = get_global_id(0) / TEAM * HELD;
    uint nodes[HELD];
    for (uint i = 0; i < HELD; ++i) nodes[i] = first + i < count ? 0 : UINT_MAX;
    Descriptor x;
#if HELD == 1
    take(&x, &team, points, min(first, count - 1));
#endif
    for (uint level = 0; level < DEPTH; ++level) {
        for (uint i = 0; i < HELD; ++i) {
            uint node = nodes[i];
            if (VECTOR && node == UINT_MAX) continue; /* a team of several meets in nearest_of */
#if HELD > 1
            take(&x, &team, points, min(first + i, count - 1));
#endif
            size_t child = (size_t)node * K + nearest_of(&x, &team, centres, halves, node);
            if (node != UINT_MAX) {
                nodes[i] = children[child];
                if (nodes[i] == UINT_MAX && team.lane == 0) words[first + i] = leaves[child];
            }
        }
    }
}
