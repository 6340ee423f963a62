import { Session } from 'node:inspector/promises';
import { fileURLToPath } from 'node:url';
import { isMainThread, parentPort, Worker } from 'node:worker_threads';

/*
 * How deep a request is nested when its handler begins.
 *
 * The debugger stops at the first line of the handler and reads the stack, with the stack of each `await` before it: V8
 * connects them, through the promises of express and openapi-backend as well. A function is counted if it began before
 * the handler, has not ended, and is the reason why the handler runs: it called the next one, or awaits it, or returned
 * its promise. Callbacks count like named functions. A function that had finished by then, such as the check of the
 * credentials, is a step beside the others, not around the handler. Packages and the handler are not counted.
 */

const source = /\/src\/(?!generated\/)/;

interface Frame {
  readonly functionName: string;
  readonly scriptId: string;
}

interface Trace {
  readonly callFrames: readonly Frame[];
  readonly parent?: Trace | undefined;
}

/** The functions around the handler, the innermost first, while `request` is handled. */
export async function nestedSteps(handler: unknown, request: () => Promise<unknown>): Promise<string[]> {
  // A thread cannot read its own stack while it is stopped.
  const worker = new Worker(fileURLToPath(import.meta.url));
  const messages: unknown[] = [];
  let wake = (): void => undefined;
  worker.on('message', (message) => {
    messages.push(message);
    wake();
  });
  const next = async (): Promise<unknown> => {
    while (messages.length === 0) await new Promise<void>((resolve) => (wake = resolve));
    return messages.shift();
  };
  Object.assign(globalThis, { handlerToStopAt: handler });
  try {
    await next();
    await request();
    return (await next()) as string[];
  } finally {
    worker.postMessage('done');
    worker.unref();
  }
}

async function watch(): Promise<void> {
  const session = new Session();
  session.connectToMainThread();
  // Without a listener, the thread would end while the main thread runs.
  parentPort!.on('message', () => session.disconnect());
  const urls = new Map<string, string>();
  session.on('Debugger.scriptParsed', ({ params }) => urls.set(params.scriptId, params.url));
  await session.post('Debugger.enable');
  await session.post('Debugger.setAsyncCallStackDepth', { maxDepth: 1_000 });
  const { result } = await session.post('Runtime.evaluate', { expression: 'globalThis.handlerToStopAt' });
  await session.post('Debugger.setBreakpointOnFunctionCall', { objectId: result.objectId });
  session.on('Debugger.paused', ({ params }) => {
    const steps = new Set<string>();
    const [, ...callers] = params.callFrames.map(({ functionName, location: { scriptId } }) => ({
      ...{ functionName, scriptId },
    }));
    let trace: Trace | undefined = {
      callFrames: callers,
      parent: params.asyncStackTrace as Trace | undefined,
    };
    for (; trace !== undefined; trace = trace.parent) {
      for (const { functionName, scriptId } of trace.callFrames) {
        const url = urls.get(scriptId) ?? '';
        const name = functionName || 'a callback';
        if (source.test(url)) steps.add(`${name} of ${url.slice(url.search(source) + 1)}`);
      }
    }
    void session.post('Debugger.resume');
    parentPort!.postMessage([...steps]);
  });
  parentPort!.postMessage('watching');
}

if (!isMainThread) await watch();
