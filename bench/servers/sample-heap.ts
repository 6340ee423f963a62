import { type HeapProfiler, Session } from 'node:inspector';

// Loaded before a server: on the message `sample` it begins to sample what it allocates and what outlives the
// collections of the young generation; on `read` it sends these samples, also of what is garbage by now.

const session = new Session();
session.connect();

process.on('message', (message) => {
  if (message === 'sample') {
    session.post('HeapProfiler.startSampling', {
      samplingInterval: 4096,
      includeObjectsCollectedByMajorGC: true,
      includeObjectsCollectedByMinorGC: false,
    });
  }
  if (message === 'read') {
    session.post(
      'HeapProfiler.stopSampling',
      (_error: Error | null, result: HeapProfiler.StopSamplingReturnType) => process.send?.(result.profile),
    );
  }
});
// The channel alone does not keep the server running.
process.channel?.unref();
