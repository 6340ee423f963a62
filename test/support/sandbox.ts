import { Agent } from 'undici';
import {
  startSandbox as composeSandbox,
  type Sandbox,
  type SandboxOptions,
} from '../../src/compose/sandbox.ts';
import { recordEvents } from '../ledger/record-events.ts';

export type TestSandbox = Sandbox &
  AsyncDisposable & {
    /** Trusts the sandbox's certificate and nothing else. */
    readonly dispatcher: Agent;
    /** The word in its clients' headers. */
    readonly prefix: string;
    /** The document as this sandbox serves it. */
    document(): Promise<OpenApiDocument>;
  };

/** As much of the document as tests read. */
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
 * A whole server in this process: own port, own database in memory, stopped clock, ids and keys drawn from a seed,
 * the named mocks planted. `await using sandbox = await startSandbox()` stops it at the end of the test.
 */
export async function startSandbox(options: SandboxOptions = {}): Promise<TestSandbox> {
  const sandbox = await composeSandbox({
    port: 0,
    seed: 'test',
    seedData: true,
    logLevel: 'silent',
    // Most tests create a few wallets.
    preparedKeys: 0,
    // Most tests compare whole bodies with those of production; refusal-hints.test.ts sends hints.
    hints: false,
    // Most tests compare times with that of the clock; frozen-clock.test.ts lets it tick.
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
