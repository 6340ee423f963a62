import { readdirSync } from 'node:fs';
import { join, relative } from 'node:path';
import type { Operation } from './read-operations.ts';

/** One contract and the paths of its outputs, relative to the root of the project. */
export interface Contract {
  readonly name: string;
  /** The hand-written documents in the order in which they are merged. Empty when the contract does not exist yet. */
  sources(root: string): string[];
  readonly document: string;
  readonly generated: string;
  /** The folder of the handlers. Each tag has one file. */
  readonly handlers: string;
  /** The module of the types `Handler` and `Handlers`, relative to the root. */
  readonly handlerType: string;
  readonly errors: string;
  readonly info: Record<string, unknown>;
  readonly servers: { url: string; description?: string }[];
  readonly security: Record<string, string[]>[];
  /** Error codes that operations return without listing them in `x-errors`. */
  readonly commonErrors: {
    readonly always: readonly string[];
    readonly withCredentials: readonly string[];
    /** The codes for operations with path or query parameters. */
    readonly withParameters: readonly string[];
    readonly withBody: readonly string[];
    readonly ofOauthClients: readonly string[];
  };
  /** Whether to emit `errors.ts`, `brand.ts` and `secrets.ts`. */
  readonly emitsCatalogue: boolean;
}

function yamlFilesIn(root: string, folder: string): string[] {
  try {
    return readdirSync(join(root, folder))
      .filter((name) => name.endsWith('.yaml'))
      .sort()
      .map((name) => join(folder, name));
  } catch {
    return [];
  }
}

const license = { name: 'Apache License 2.0', identifier: 'Apache-2.0' };
const servers = [{ url: 'https://127.0.0.1:4010', description: 'A sandbox on this machine.' }];

export const contracts: readonly Contract[] = [
  {
    name: 'service',
    sources: (root) => yamlFilesIn(root, 'openapi'),
    document: 'openapi/openapi.json',
    generated: 'src/generated',
    handlers: 'src/api',
    handlerType: 'src/ports/operation-context.ts',
    errors: 'src/errors.ts',
    info: {
      title: 'Custos',
      version: '0.0.1',
      summary: 'Wallet infrastructure: wallets, users, owners, policies, intents and signing.',
      description:
        'Every request uses HTTPS and the credentials of an app: HTTP Basic with the app id and the app secret, and the same app id in `service-app-id`. Bodies are JSON. Requests that use or change a resource with an owner also carry the signatures of its owner in `service-authorization-signature`. Errors are `{error, code?, data?}`; programs should read `code`. Where a rate limit is set, responses have `ratelimit`, `ratelimit-policy`, and `x-ratelimit-limit`, `-remaining` and `-reset`.',
      license,
    },
    servers,
    security: [{ appCredentials: [] }],
    commonErrors: {
      // Operations return `invalid_data` for a header that was sent twice.
      always: [
        'invalid_data',
        'https_required',
        'foreign_host',
        'too_many_requests',
        'internal_error',
        'unavailable',
      ],
      withCredentials: [
        'missing_or_invalid_token',
        'invalid_app_credentials',
        'missing_or_invalid_service_app_id',
        // Every operation checks the expiry of the request.
        'request_expired',
      ],
      withParameters: ['invalid_data'],
      withBody: ['invalid_data', 'unsupported_media_type', 'payload_too_large'],
      ofOauthClients: ['invalid_request', 'invalid_client', 'request_expired'],
    },
    emitsCatalogue: true,
  },
  {
    name: 'control plane',
    sources: (root) => yamlFilesIn(root, 'openapi/control-plane'),
    document: 'openapi/control-plane.json',
    generated: 'src/sandbox/generated',
    handlers: 'src/sandbox/handlers',
    handlerType: 'src/sandbox/control-plane.ts',
    errors: 'src/errors.ts',
    info: {
      title: 'Custos sandbox control plane',
      version: '0.0.1',
      summary: 'Controls a running sandbox: its clock, state, chains, policies and events.',
      license,
    },
    servers,
    security: [],
    commonErrors: { always: [], withCredentials: [], withParameters: [], withBody: [], ofOauthClients: [] },
    emitsCatalogue: false,
  },
];

/** Returns the path of the file that exports an operation, relative to the root. */
export function handlerPath(contract: Contract, { tag }: Pick<Operation, 'tag'>): string {
  return join(contract.handlers, `${tag.replaceAll('_', '-')}.ts`);
}

/** Returns the import specifier from a folder to a file, both relative to the root. */
export function specifier(fromFolder: string, file: string): string {
  const path = relative(fromFolder, file);
  return path.startsWith('.') ? path : `./${path}`;
}
