import { fork } from 'node:child_process';
import { join } from 'node:path';

/**
 * Runs a program of `in-process/` in its own process, so that nothing else is measured. Strings that it sends are
 * progress; its last other message is the result.
 */
export function runInProcess<Result>(
  file: string,
  args: readonly string[],
  report: (progress: string) => void,
): Promise<Result> {
  const child = fork(join(import.meta.dirname, '..', 'in-process', file), args, {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  const kill = (): void => void child.kill('SIGKILL');
  process.once('exit', kill);
  return new Promise((resolve, reject) => {
    let result: Result | undefined;
    child.on('message', (message: Result | string) => {
      if (typeof message === 'string') report(message);
      else result = message;
    });
    child.on('error', reject);
    child.on('exit', (code) => {
      process.off('exit', kill);
      if (code === 0 && result !== undefined) resolve(result);
      else reject(new Error(`${file} ended with code ${code}`));
    });
  });
}
