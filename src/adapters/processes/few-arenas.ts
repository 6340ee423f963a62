/**
 * For the environment of child processes. The C library of most Linux systems gives each thread a pool of memory of its own,
 * and what the compiler threads of V8 have freed stays in theirs: 18 MB. It reads this variable only as a process starts.
 */
export const fewArenas: Readonly<Record<string, string>> = { MALLOC_ARENA_MAX: '2' };
