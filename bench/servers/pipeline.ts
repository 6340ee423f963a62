import { hash } from 'node:crypto';
import { systemClock } from '../../src/adapters/clock.ts';
import { systemEntropy } from '../../src/adapters/entropy.ts';
import { silentLog } from '../../src/adapters/log.ts';
import { responseValidators } from '../../src/generated/response-validators.js';
import { createApp } from '../../src/http/app.ts';
import { createAuthenticate } from '../../src/http/authenticate.ts';
import { requestIdsFrom } from '../../src/http/request-ids.ts';
import { createResponseCheck } from '../../src/http/response-check.ts';
import { createRunOperation } from '../../src/http/run-operation.ts';
import { startServer } from '../../src/http/server.ts';
import type { UnitOfWork } from '../../src/http/unit-of-work.ts';
import type { Services } from '../../src/operation-context.ts';
import { packageRoot } from '../../src/package-root.ts';
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
const newRequestId = requestIdsFrom(systemEntropy);
const application = await createApp({
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
  run: createRunOperation({
    services: { clock: systemClock, log: silentLog, vault: { isLocal: true } } as unknown as Services,
    registry: Object.fromEntries(
      allOperations.map(({ id }) => [id, { run: async (input: WorkInput) => work[id]?.(input) }]),
    ),
    openUnit: () => ({ ...unit, watches: [] }),
    idempotency: { begin: async () => undefined, keep: async () => {}, end: () => {} },
    singleUse: {
      begin: async () => ({ isRequired: false }),
      keep: async () => {},
      replace: async () => {},
    },
    check: createResponseCheck({
      mode: options.checkResponses ? 'always' : 'off',
      validators: responseValidators,
      log: silentLog,
    }),
  }),
});
const { port } = await startServer({
  ...application,
  tls: undefined,
  host: '127.0.0.1',
  port: options.port,
  log: silentLog,
  newRequestId,
});
announce(`http://127.0.0.1:${port}`);
process.once('SIGTERM', () => process.exit(0));
