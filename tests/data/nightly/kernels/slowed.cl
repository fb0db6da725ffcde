#include "rounds.cl"
