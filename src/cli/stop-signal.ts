/** Aborted by a signal or when the output pipe is closed. A second signal exits immediately. */
export function stopSignal(): AbortSignal {
  const stopping = new AbortController();
  for (const name of ['SIGINT', 'SIGTERM', 'SIGHUP'] as const) {
    process.on(name, () => {
      if (stopping.signal.aborted) process.exit(1);
      stopping.abort();
    });
  }
  process.stdout.on('error', () => stopping.abort());
  return stopping.signal;
}
