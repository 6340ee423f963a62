import type { BenchCase } from './bench-case.ts';
import { audit } from './cases/audit.ts';
import { cells } from './cases/cells.ts';
import { heldLoad } from './cases/held-load.ts';
import { jsonRpc } from './cases/json-rpc.ts';
import { onchainActions } from './cases/onchain-actions.ts';
import { overload } from './cases/overload.ts';
import { policy } from './cases/policy.ts';
import { recorder } from './cases/recorder.ts';
import { rpcAttacks } from './cases/rpc-attacks.ts';
import { snapshots } from './cases/snapshots.ts';
import { startUp } from './cases/start-up.ts';
import { stateless } from './cases/stateless.ts';
import { postgres, sqlite, users } from './cases/storage.ts';
import { stored } from './cases/stored.ts';
import { webhooks } from './cases/webhooks.ts';

/** Every case by its name on the command line, in the order in which they run. */
export const cases: Readonly<Record<string, BenchCase>> = {
  'start-up': startUp,
  snapshots,
  stateless,
  stored,
  recorder,
  audit,
  sqlite,
  postgres,
  users,
  'held-load': heldLoad,
  cells,
  policy,
  overload,
  'json-rpc': jsonRpc,
  'onchain-actions': onchainActions,
  'rpc-attacks': rpcAttacks,
  webhooks,
};
