import fc from 'fast-check';

// A vitest setup file. `npm test` tries the same cases each time, so a change is never refused for a case that it has
// nothing to do with; `TEST_LONG=1` draws others, and prints the seed of a failure.
if (process.env.TEST_LONG !== '1') fc.configureGlobal({ seed: 1 });
