import type { BenchCase } from './bench-case.ts';
import { audit } from './cases/audit.ts';
import { burst } from './cases/burst.ts';
import { connections } from './cases/connections.ts';
import { eventLoop } from './cases/event-loop.ts';
import { heldLoad } from './cases/held-load.ts';
import { https } from './cases/https.ts';
import { isolatedSigner } from './cases/isolated-signer.ts';
import { lists } from './cases/lists.ts';
import { loopSweep } from './cases/loop-sweep.ts';
import { npmStart } from './cases/npm-start.ts';
import { onchainActions } from './cases/onchain-actions.ts';
import { overload } from './cases/overload.ts';
import { policy } from './cases/policy.ts';
import { processes } from './cases/processes.ts';
import { recorder } from './cases/recorder.ts';
import { requestLog } from './cases/request-log.ts';
import { routing } from './cases/routing.ts';
import { signing } from './cases/signing.ts';
import { snapshots } from './cases/snapshots.ts';
import { startUp } from './cases/start-up.ts';
import { stateless } from './cases/stateless.ts';
import { growth } from './cases/storage/growth.ts';
import { postgres } from './cases/storage/postgres.ts';
import { sqlite } from './cases/storage/sqlite.ts';
import { users } from './cases/storage/users.ts';
import { stored } from './cases/stored.ts';
import { webhooks } from './cases/webhooks.ts';
import { workingSet } from './cases/working-set.ts';

/** Every case by its name on the command line, in the order in which they run. */
export const cases: Readonly<Record<string, BenchCase>> = {
  'start-up': startUp,
  'npm-start': npmStart,
  snapshots,
  stateless,
  stored,
  routing,
  recorder,
  'request-log': requestLog,
  audit,
  sqlite,
  postgres,
  growth,
  users,
  https,
  'held-load': heldLoad,
  burst,
  connections,
  'onchain-actions': onchainActions,
  'isolated-signer': isolatedSigner,
  'working-set': workingSet,
  lists,
  policy,
  signing,
  'event-loop': eventLoop,
  'loop-sweep': loopSweep,
  overload,
  processes,
  webhooks,
};
