import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';
import type { LoadOrder, LoadResult } from './load-order.ts';

/** The process that sends the requests. */
export interface Load {
  readonly pid: number;
  /**
   * Sends requests. Rejects when responses were wrong, because failures must not count as fast responses.
   *
   * @param onOpen called when every connection has been greeted.
   */
  run(order: LoadOrder, onOpen?: () => void): Promise<LoadResult>;
  stop(): void;
}

type Reply = { result: LoadResult } | { error: string };
type Message = Reply | { isOpen: true };

/** Starts the load generator. */
export function startLoad(): Load {
  const child = fork(join(import.meta.dirname, 'load-generator.ts'), {
    stdio: ['ignore', 'ignore', 'inherit', 'ipc'],
  });
  return {
    pid: child.pid as number,
    async run(order, onOpen = () => undefined) {
      const reply = await ask(child, order, onOpen);
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

function ask(child: ChildProcess, order: LoadOrder, onOpen: () => void): Promise<Reply> {
  return new Promise((resolve, reject) => {
    const onExit = (): void => reject(new Error('the load generator ended'));
    const onMessage = (message: Message): void => {
      if ('isOpen' in message) {
        onOpen();
        return;
      }
      child.off('exit', onExit);
      child.off('message', onMessage);
      resolve(message);
    };
    child.once('exit', onExit);
    child.on('message', onMessage);
    child.send(order);
  });
}
