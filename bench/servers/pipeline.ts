import { hash } from 'node:crypto';
import { silentLog } from '../../src/adapters/log.ts';
import { systemClock, systemEntropy } from '../../src/adapters/runtime.ts';
import { packageRoot } from '../../src/config/package-root.ts';
import { responseValidators } from '../../src/generated/response-validators.js';
import { createNotes, type Services } from '../../src/ports/operation-context.ts';
import { createApp } from '../../src/server/app.ts';
import { createAuthenticate } from '../../src/server/authenticate.ts';
import { bindHandlers } from '../../src/server/run-operation.ts';
import { startServer } from '../../src/server/server.ts';
import { requestIdsFrom } from '../../src/server/transport-guards.ts';
import type { UnitOfWork } from '../../src/server/unit-of-work.ts';
import { createResponseCheck } from '../../src/server/validation-issues.ts';
import { allOperations } from './contract-facts.ts';
import { credentials } from './credentials.ts';
import type { WorkInput } from './handlers/work.ts';
import { announce, chooseWork, readOwnOptions } from './own-server.ts';

// The real pipeline of Custos, with handlers that store nothing instead of the domain.

const options = readOwnOptions();
const work = await chooseWork(options);
const app = {
  id: credentials.appId,
  name: 'Bench',
  secretHashes: [hash('sha256', credentials.appSecret, 'buffer')],
  allowedOrigins: [],
};
// No handler below uses the entity manager.
const unit = {
  em: undefined as unknown as UnitOfWork['em'],
  commit: async () => {},
  rollback: async () => {},
};
const registry = Object.fromEntries(
  allOperations.map(({ id }) => [id, { run: async (input: WorkInput) => work[id]?.(input) }]),
);
const newRequestId = requestIdsFrom(systemEntropy);
const handler = await createApp({
  prefix: 'service',
  packageRoot: packageRoot(),
  transport: { plainHttp: true, trustedProxies: [] },
  clock: systemClock,
  log: silentLog,
  newRequestId,
  publicBaseUrls: () => [],
  isHostSigned: true,
  authenticate: createAuthenticate({
    apps: { find: async (id) => (id === app.id ? app : undefined), generation: () => 0 },
    clock: systemClock,
  }),
  handlers: bindHandlers(registry, {
    services: { clock: systemClock, log: silentLog, keyStore: { isLocal: true } } as unknown as Services,
    openUnit: async () => ({ ...unit, notes: createNotes(), watches: [] }),
    idempotency: { begin: async () => undefined, keep: async () => {}, end: () => {} },
    singleUse: {
      begin: async () => ({ isRequired: false }),
      keep: async () => {},
      replace: async () => {},
    },
    check: createResponseCheck({
      mode: 'always',
      validators: responseValidators,
      log: silentLog,
    }),
  }),
});
const { port } = await startServer({
  handler,
  tls: undefined,
  host: '127.0.0.1',
  port: options.port,
  log: silentLog,
  newRequestId,
});
announce(`http://127.0.0.1:${port}`);
process.once('SIGTERM', () => process.exit(0));
