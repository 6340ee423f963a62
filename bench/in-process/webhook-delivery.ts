import { fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { silentLog } from '../../src/adapters/log.ts';
import { makeIds, systemClock, systemEntropy } from '../../src/adapters/runtime.ts';
import { anyAddress, createWebhookSender } from '../../src/adapters/webhook-http.ts';
import { jobsOf } from '../../src/compose/jobs.ts';
import { createWebhookEndpoint } from '../../src/domain/access/webhooks/webhook-endpoint.ts';
import { recordEvent } from '../../src/domain/base/events/events.ts';
import { entities } from '../../src/domain/tables.ts';
import { createWallet } from '../../src/domain/wallets/wallets/create-wallet.ts';
import { DELIVER_EVENTS } from '../../src/jobs/deliver-events.ts';
import { startJobs } from '../../src/jobs/runner.ts';
import { createKeyStore } from '../../src/keys/key-operations.ts';
import { localMasterKey } from '../../src/keys/master-keys.ts';
import type { OperationContext, Services, UnitContext } from '../../src/ports/operation-context.ts';
import { inUnitOf, unitsOf } from '../../src/server/unit-of-work.ts';
import { type Database, openDatabase } from '../../src/storage/open-database.ts';
import { credentials } from '../servers/credentials.ts';
import { temporaryFolder } from '../servers/launch.ts';
import { measureOnce, reportProgress } from './storage-rounds.ts';

// What recording an event adds to creating a wallet, and how many events per second reach a fast endpoint.

export interface DeliveryMeasured {
  readonly database: string;
  /** CPU µs per wallet, by turn. */
  readonly wallet: number[];
  readonly walletAndEvent: number[];
  /** Events per second, by round. */
  readonly delivered: number[];
  /** CPU µs of the delivering process per event, by round. */
  readonly delivery: number[];
}

const services = {
  clock: systemClock,
  entropy: systemEntropy,
  ids: makeIds(systemEntropy),
  keyStore: createKeyStore({
    masterKeys: [localMasterKey('bench', systemEntropy.bytes(32), systemEntropy)],
    entropy: systemEntropy,
  }),
  log: silentLog,
  webhooks: createWebhookSender({ guard: anyAddress }),
  processId: 'bench',
  prefix: 'service',
} as unknown as Services;

const RECORDED_AT_ONCE = 100;
const WALLETS_A_TURN = 200;

const contextOf = (unit: UnitContext): OperationContext =>
  ({
    ...services,
    ...unit,
    app: { id: credentials.appId, name: 'Bench' },
    nowMs: systemClock.now(),
    proof: { signatures: [], canonicalPayloads: () => [], expiryMs: undefined, userId: undefined },
  }) as unknown as OperationContext;

const eventOf = (walletId: string): object => ({
  wallet_id: walletId,
  wallet_address: '0x9858EfFD232B4033E47d90003D41EC34EcaEda94',
  chain_type: 'ethereum',
});

async function makeWallet(database: Database, isRecording: boolean): Promise<void> {
  await inUnitOf(unitsOf(database))(async (em, notes) => {
    const context = contextOf({ em, notes });
    const wallet = await createWallet(context, { chain_type: 'ethereum' });
    if (isRecording)
      await recordEvent(context, {
        appId: context.app.id,
        type: 'wallet.restored',
        payload: eventOf(wallet.id),
      });
  });
}

/** Records events of `count / 5` wallets, then starts the delivery and waits until all have arrived. */
async function deliver(database: Database, count: number) {
  const inUnit = inUnitOf(unitsOf(database));
  const receiver = fork(join(import.meta.dirname, '..', 'servers', 'webhook-receiver.ts'));
  try {
    const [{ port }] = (await once(receiver, 'message')) as [{ port: number }];
    await inUnit((em, notes) =>
      createWebhookEndpoint(contextOf({ em, notes }), { url: `http://127.0.0.1:${port}/` }),
    );
    for (let recorded = 0; recorded < count; recorded += RECORDED_AT_ONCE) {
      await inUnit(async (em, notes) => {
        for (let at = 0; at < RECORDED_AT_ONCE; at += 1) {
          await recordEvent(contextOf({ em, notes }), {
            appId: credentials.appId,
            type: 'wallet.restored',
            payload: eventOf(`w${(recorded + at) % (count / 5)}`),
          });
        }
      });
    }
    const startedMs = performance.now();
    const before = process.cpuUsage();
    const all = jobsOf(services, unitsOf(database), { wakeSoon: () => undefined });
    const delivery = all.filter(({ name }) => name === DELIVER_EVENTS);
    const jobs = startJobs(delivery, silentLog);
    await jobs.finish();
    const elapsedMs = performance.now() - startedMs;
    const { user, system } = process.cpuUsage(before);
    await jobs.stop();
    receiver.send('count');
    const [reply] = (await once(receiver, 'message')) as [{ count: number }];
    if (reply.count !== count) throw new Error(`expected ${count} events, got ${reply.count}`);
    await inUnit((em) => em.execute('delete from webhook_endpoints'));
    return { perSecond: (count * 1000) / elapsedMs, cpuMicroseconds: (user + system) / count };
  } finally {
    receiver.disconnect();
  }
}

const { values } = parseArgs({
  options: {
    rounds: { type: 'string', default: '3' },
    events: { type: 'string', default: '10000' },
    wallets: { type: 'string', default: '1000' },
    url: { type: 'string' },
  },
});
const database = await openDatabase(
  entities,
  values.url === undefined
    ? { kind: 'sqlite', file: join(temporaryFolder(), 'webhooks.sqlite') }
    : { kind: 'postgres', url: values.url, poolSize: 10 },
);
const measured: DeliveryMeasured = {
  database: database.kind,
  wallet: [],
  walletAndEvent: [],
  delivered: [],
  delivery: [],
};
for (let round = 0; round <= Number(values.rounds); round += 1) {
  reportProgress(
    round === 0 ? `warming up ${database.kind}` : `round ${round} of ${values.rounds}: ${database.kind}`,
  );
  // Short alternating turns, so that other load on the machine affects both equally.
  for (let made = 0; made < Number(values.wallets); made += WALLETS_A_TURN) {
    const plain = await measureOnce(() => makeWallet(database, false), WALLETS_A_TURN, 1);
    const recording = await measureOnce(() => makeWallet(database, true), WALLETS_A_TURN, 1);
    if (round === 0) continue;
    measured.wallet.push(plain.cpuMicroseconds);
    measured.walletAndEvent.push(recording.cpuMicroseconds);
  }
  await database.orm.em.fork().execute('delete from outbox_events');
  const delivered = await deliver(database, round === 0 ? 1_000 : Number(values.events));
  if (round === 0) continue;
  measured.delivered.push(delivered.perSecond);
  measured.delivery.push(delivered.cpuMicroseconds);
}
await services.webhooks.close();
await database.close();
process.send?.(measured);
process.disconnect?.();
