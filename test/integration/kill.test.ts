import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { databaseOf } from '../../src/adapters/sandbox-folder.ts';
import type { Wallet } from '../../src/generated/schemas.ts';
import { figureSize, isLong, noteFigure } from '../figures/figure.ts';
import { type ServingCustos, serveCustos, temporaryFolder, waitFor } from '../support/run-custos.ts';

// The process is killed during its work, repeatedly, on the same folder.
const kills = figureSize({ short: 2, long: 100 });
const clients = 4;

interface Acknowledged {
  readonly id: string;
  readonly address: string;
  readonly key: string;
}

/** Creates wallets, each with its own idempotency key, signs with them and creates users, until the server is killed. */
async function makeWallets(
  custos: ServingCustos,
  name: string,
  acknowledged: Acknowledged[],
  tried: Set<string>,
  users: string[],
) {
  for (let count = 0; ; count += 1) {
    const key = `${name}-${count}`;
    tried.add(key);
    try {
      const body = { chain_type: 'ethereum', external_id: key };
      const answer = await custos.call<Wallet>('POST', '/v1/wallets', body, {
        'service-idempotency-key': key,
      });
      if (answer.status !== 200) throw new Error(`answered ${answer.status}: ${answer.text}`);
      acknowledged.push({ id: answer.body.id, address: answer.body.address, key });
      const params = { message: key, encoding: 'utf-8' };
      const signed = await custos.call('POST', `/v1/wallets/${answer.body.id}/rpc`, {
        ...{ method: 'personal_sign', params },
      });
      if (signed.status !== 200) throw new Error(`answered ${signed.status}: ${signed.text}`);
      const linked_accounts = [{ type: 'email', address: `${key}@example.com` }];
      const user = await custos.call<{ id: string }>('POST', '/v1/users', { linked_accounts });
      if (user.status !== 200) throw new Error(`answered ${user.status}: ${user.text}`);
      users.push(user.body.id);
    } catch (error) {
      if (custos.process.exitCode === null && custos.process.signalCode === null && !custos.process.killed)
        throw error;
      return;
    }
  }
}

test(`${kills} kills during requests lose nothing acknowledged and leave nothing half done`, async () => {
  const data = temporaryFolder();
  const acknowledged: Acknowledged[] = [];
  const tried = new Set<string>();
  const users: string[] = [];
  for (let kill = 0; kill < kills; kill += 1) {
    const custos = await serveCustos(['sandbox', '--data', data, '--quiet']);
    const work = Array.from({ length: clients }, (_, client) =>
      makeWallets(custos, `kill-${kill}-${client}`, acknowledged, tried, users),
    );
    // By progress, because a busy machine does nothing in a fixed time.
    const enough = acknowledged.length + 6 + ((kill * 7) % 11);
    await waitFor(() => acknowledged.length >= enough, isLong ? 300_000 : 60_000);
    await new Promise((resolve) => setTimeout(resolve, (kill * 37) % 23));
    await custos.stop('SIGKILL');
    await Promise.all(work);
  }
  expect(acknowledged.length).toBeGreaterThan(kills * clients);

  const custos = await serveCustos(['sandbox', '--data', data, '--quiet']);
  for (const { id, address, key } of acknowledged) {
    const { status, body } = await custos.call<Wallet>('GET', `/v1/wallets/ext_wal_${key}`);
    expect({ status, id: body.id, address: body.address }).toEqual({ status: 200, id, address });
  }
  // An unacknowledged wallet exists completely, with a working key, or not at all; a retry creates it exactly once.
  const known = new Set(acknowledged.map(({ key }) => key));
  for (const key of [...tried].filter((name) => !known.has(name))) {
    const before = await custos.call<Wallet>('GET', `/v1/wallets/ext_wal_${key}`);
    const body = { chain_type: 'ethereum', external_id: key };
    const retry = await custos.call<Wallet>('POST', '/v1/wallets', body, { 'service-idempotency-key': key });
    expect(retry.status).toBe(200);
    if (before.status === 200) expect(retry.body.id).toBe(before.body.id);
    const signed = await custos.call('POST', `/v1/wallets/${retry.body.id}/rpc`, {
      method: 'personal_sign',
      params: { message: 'still here', encoding: 'utf-8' },
    });
    expect(signed.status).toBe(200);
  }
  await custos.stop();
  judgeStored(databaseOf(data), users);
  noteFigure({
    kills,
    users: users.length,
    requests: tried.size,
    acknowledged: acknowledged.length,
  });
}, 7_200_000);

/** Every wallet and user has one audit record, every record its wallet or user, and every user one event. */
function judgeStored(file: string, acknowledgedUsers: readonly string[]): void {
  const database = new Sqlite(file, { readonly: true });
  const idsOf = (sql: string): string[] =>
    database
      .prepare<[], { id: string }>(sql)
      .all()
      .map(({ id }) => id);
  try {
    expect(database.pragma('integrity_check', { simple: true })).toBe('ok');
    const entries = 'select entry from audit_records union all select entry from audit_pending';
    const recorded = (operation: string): string[] =>
      idsOf(`select json_extract(entry, '$.ids.id') as id from (${entries})
        where json_extract(entry, '$.operation') = '${operation}' and json_extract(entry, '$.decision') = 'allow'`);
    expect(recorded('createWallet').sort()).toEqual(idsOf('select id from wallets').sort());
    const users = idsOf('select id from users').sort();
    expect(recorded('createUser').sort()).toEqual(users);
    expect(idsOf("select resource_id as id from outbox_events where type = 'user.created'").sort()).toEqual(
      users,
    );
    const known = new Set(users);
    expect(acknowledgedUsers.filter((id) => !known.has(id))).toEqual([]);
  } finally {
    database.close();
  }
}
