import { runSlice, type Slice } from './run-seeds.ts';

// One of several processes that run seeds; see `run-seeds.ts`.
process.on('message', (slice) => {
  void runSlice(slice as Slice).then((tally) => process.send!(tally));
});
