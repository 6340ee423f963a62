import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { systemClock } from '../../../src/adapters/runtime.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { openSimulatedChains } from '../../../src/sandbox/simulated/chains/simulated-chains.ts';
import { type ServingCustos, serveCustos, temporaryFolder } from '../../support/run-custos.ts';

// The process is killed while executions run, again and again, on the same folder.
const isLong = process.env.TEST_LONG === '1';
const [wallets, deposits, kills] = [500, 10_000, 20];
const eurc = '0x60a3E35Cc302bFA44Cb288Bc5a4F316Fdb1adb42';
const rawAmount = 1_000_000n;
/** Requests at once. */
const CLIENTS = 8;

test.runIf(isLong)(
  `${deposits} deposits to ${wallets} wallets and ${kills} kills: each has one execution, each unit moves once`,
  async () => {
    const data = temporaryFolder();
    const start = () => serveCustos(['sandbox', '--data', data, '--quiet']);
    let custos = await start();
    const post = async <Body>(path: string, body: object): Promise<Body> => {
      const answer = await custos.call<Body>('POST', path, body);
      if (answer.status !== 200) throw new Error(`${path} answered ${answer.status}: ${answer.text}`);
      return answer.body;
    };
    const { id: automation } = await post<{ id: string }>('/v1/wallet_automations', {
      owner_id: null,
      config: {
        trigger: { type: 'deposit', assets: { mode: 'include', values: [{ asset: 'eurc', chain: 'base' }] } },
        action: { type: 'swap', destination_chain_asset: { asset: 'usdc', chain: 'base' } },
      },
    });
    const made: Wallet[] = [];
    await inParallel(wallets, async () => {
      const wallet = await post<Wallet>('/v1/wallets', { chain_type: 'ethereum' });
      await post(`/v1/wallets/${wallet.id}/automations/attach`, { automation_ids: [automation] });
      made.push(wallet);
    });
    const each = Math.ceil(deposits / (kills + 1));
    for (let given = 0, kill = 0; given < deposits; kill += 1) {
      await custos.stop('SIGKILL');
      const first = given;
      given = Math.min(deposits, given + each);
      await deposit(
        data,
        Array.from({ length: given - first }, (_, index) => made[(first + index) % wallets]!),
      );
      custos = await start();
      // Deposits are detected, swaps are signed, transactions are broadcast and settled until the next kill.
      await sleep(2000 + ((kill * 397) % 1900));
    }
    // What the killed processes had claimed can be claimed again.
    await passTime(custos, 90_000);
    const database = new Sqlite(join(data, 'custos.sqlite'), { readonly: true });
    const counts = (sql: string) => database.prepare(sql).raw().all();
    const open = () =>
      counts(
        "select count(*) from wallet_automation_executions where status in ('pending', 'submitted')",
      )[0] as [number];
    const detected = () => counts('select count(*) from wallet_automation_executions')[0] as [number];
    for (let round = 0; (open()[0] > 0 || detected()[0] < deposits) && round < 2000; round += 1) {
      await sleep(500);
      await passTime(custos, 15_000);
    }
    await custos.stop();
    expect(open()).toEqual([0]);
    expect(counts('select count(*), count(distinct transfer_key) from wallet_automation_executions')).toEqual(
      [[deposits, deposits]],
    );
    const byStatus = Object.fromEntries(
      counts('select status, count(*) from wallet_automation_executions group by status') as [
        string,
        number,
      ][],
    );
    expect(Object.keys(byStatus).sort()).toEqual(['completed', 'skipped']);
    const perWallet = 'select count(*) as n from wallet_automation_executions group by wallet_id';
    expect(counts(`select n, count(*) from (${perWallet}) group by n`)).toEqual([
      [deposits / wallets, wallets],
    ]);
    const inputs = "sum(cast(json_extract(outcome, '$.input_amount') as integer))";
    const [actions] = counts(`select count(*), ${inputs} from wallet_actions where status = 'succeeded'`);
    expect(actions).toEqual([byStatus.completed, Number(rawAmount) * deposits]);
    expect(counts('select count(*) from wallet_actions')).toEqual([[byStatus.completed]]);
    const submitted = "from outbox_events where type = 'wallet_automation.submitted'";
    expect(counts(`select count(*) ${submitted}`)).toEqual([[byStatus.completed]]);
    const triggers = "count(distinct json_extract(payload, '$.trigger_id'))";
    expect(counts(`select ${triggers} ${submitted}`)).toEqual([[byStatus.completed]]);
    process.stdout.write(`executions: ${JSON.stringify(byStatus)}\n`);
  },
  3_000_000,
);

/** Pays to each wallet while no server runs. */
async function deposit(data: string, to: readonly Wallet[]): Promise<void> {
  const file = join(data, 'chain.sqlite');
  const chains = openSimulatedChains({ file, clock: systemClock, confirmAfterMs: undefined });
  for (const { address } of to) {
    const token = { tokenAddress: eurc, decimals: 6, symbol: 'EURC' };
    await chains.fund('eip155:8453', { address, rawAmount, ...token });
  }
  await chains.close();
}

/** Does `work` so many times, a few at once. */
async function inParallel(times: number, work: (index: number) => Promise<void>): Promise<void> {
  let next = 0;
  const worker = async () => {
    while (next < times) {
      next += 1;
      await work(next - 1);
    }
  };
  await Promise.all(Array.from({ length: CLIENTS }, worker));
}

async function passTime(custos: ServingCustos, ms: number): Promise<void> {
  const { body } = await custos.call<{ now_ms: number }>('GET', '/_sandbox/clock');
  await custos.call('PUT', '/_sandbox/clock', { now_ms: body.now_ms + ms, frozen: false });
}
