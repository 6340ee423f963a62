import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import type { LoadOrder, LoadResult } from './load-order.ts';

/** The process that sends the requests. */
export interface Load {
  readonly pid: number;
  /** Sends requests. Rejects when responses were wrong, because failures must not count as fast responses. */
  run(order: LoadOrder): Promise<LoadResult>;
  stop(): void;
}

type Reply = { result: LoadResult } | { error: string };

/** Starts the load generator. */
export function startLoad(): Load {
  const child = fork(join(import.meta.dirname, 'load-generator.ts'), {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  return {
    pid: child.pid as number,
    async run(order) {
      const reply = await ask(child, order);
      if ('error' in reply) throw new Error(`the load generator failed: ${reply.error}`);
      const { result } = reply;
      if (result.wrong > 0) {
        throw new Error(
          `${result.wrong} wrong answers from ${order.origins[0]}; the first: ${result.firstWrong}`,
        );
      }
      return result;
    },
    stop: () => void child.kill(),
  };
}

function ask(child: ChildProcess, order: LoadOrder): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const onExit = (): void => reject(new Error('the load generator ended'));
    child.once('exit', onExit);
    child.once('message', (reply: Reply) => {
      child.off('exit', onExit);
      resolve(reply);
    });
    child.send(order);
  });
}
