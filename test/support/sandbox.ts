import { Agent } from 'undici';
import {
  startSandbox as composeSandbox,
  type Sandbox,
  type SandboxOptions,
} from '../../src/compose/sandbox.ts';
import { recordEvents } from '../ledger/record-events.ts';

export type TestSandbox = Sandbox &
  AsyncDisposable & {
    /** Trusts only the sandbox's certificate. */
    readonly dispatcher: Agent;
    /** The prefix in the header names of its clients. */
    readonly prefix: string;
    /** Returns the document in the form that this sandbox serves. */
    document(): Promise<OpenApiDocument>;
  };

/** The members of the document that tests read. */
export interface OpenApiDocument {
  readonly paths: Readonly<Record<string, Readonly<Record<string, OpenApiOperation>>>>;
  readonly components: unknown;
}

interface OpenApiOperation {
  readonly operationId: string;
  readonly responses: Readonly<Record<string, OpenApiResponse>>;
}

export interface OpenApiResponse {
  readonly content?: Readonly<
    Record<
      string,
      {
        readonly schema?: { readonly $ref?: string };
        readonly examples?: Readonly<Record<string, { readonly value: unknown }>>;
      }
    >
  >;
}

/**
 * Starts a complete server in this process. It has its own port, a database in memory, a frozen clock, ids and keys
 * from a seed, and the named mocks. `await using sandbox = await startSandbox()` stops it at the end of the test.
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<TestSandbox> {
  const sandbox = await composeSandbox({
    port: 0,
    seed: 'test',
    clock: 'seed' in options && options.seed === undefined ? 'now' : 'frozen',
    seedData: true,
    logLevel: 'silent',
    // Most tests create only a few wallets.
    preparedKeys: 0,
    // Most tests compare whole bodies with those of production. refusal-hints.test.ts turns hints on.
    hints: false,
    // Most tests compare times with the clock's time. frozen-clock.test.ts lets the clock tick.
    ticks: false,
    ...options,
  });
  const dispatcher = new Agent({ connect: { ca: sandbox.caPem } });
  let document: Promise<OpenApiDocument> | undefined;
  const close = async (): Promise<void> => {
    await dispatcher.destroy();
    await recordEvents(sandbox.database);
    await sandbox.close();
  };
  return {
    ...sandbox,
    close,
    async reset() {
      await recordEvents(sandbox.database);
      await sandbox.reset();
    },
    dispatcher,
    prefix: options.prefix ?? 'service',
    document: () => {
      document ??= readDocument(sandbox.baseUrl, dispatcher);
      return document;
    },
    [Symbol.asyncDispose]: close,
  };
}

async function readDocument(baseUrl: string, dispatcher: Agent): Promise<OpenApiDocument> {
  const { body } = await dispatcher.request({ origin: baseUrl, path: '/openapi.json', method: 'GET' });
  return (await body.json()) as OpenApiDocument;
}
