import { afterAll, beforeAll, describe, expect, test } from 'vitest';
import type {
  ExternalFiatAccountResponse,
  FiatDepositAccountResponse,
} from '../../../src/generated/schemas.ts';
import type { Log } from '../../../src/ports/runtime.ts';
import { databaseKinds } from '../../support/databases.ts';
import { at, type FiatWorld, ibanAccount, openFiatWorld } from './fiat-world.ts';

// Numbers of bank accounts pass through the server: they must not stay in its database or its log.
const iban = 'DE13370400440532010003';
const us = {
  ...at,
  account_owner_name: 'Alice Example',
  currency: 'usd',
  account: { type: 'us', account_number: '987650004321', routing_number: '021000021' },
  address: { street_line_1: '123 Main Street', city: 'Austin', country: 'USA' },
};

describe.each(databaseKinds)('on %s', (kind) => {
  let world: FiatWorld;
  const logged: unknown[] = [];
  beforeAll(async () => {
    world = await openFiatWorld(kind);
    const write = (...line: unknown[]) => void logged.push(line);
    const log: Log = { debug: write, info: write, warn: write, error: write } as Log;
    Object.assign(world.operations.services, { log });
  });
  afterAll(() => world[Symbol.asyncDispose]());

  /** Every row of every table as text; bytes as Latin-1, so that text inside them is found. */
  async function dump(): Promise<string> {
    const em = world.operations.database.orm.em.fork();
    const names = await em.execute(
      kind === 'sqlite'
        ? "select name from sqlite_master where type = 'table'"
        : "select table_name as name from information_schema.tables where table_schema = 'public'",
    );
    const texts: string[] = [];
    for (const { name } of names as { name: string }[]) {
      const rows = (await em.execute(`select * from "${name}"`)) as Record<string, unknown>[];
      for (const value of rows.flatMap((row) => Object.values(row))) {
        texts.push(value instanceof Uint8Array ? Buffer.from(value).toString('latin1') : String(value));
      }
    }
    expect(texts.length).toBeGreaterThan(200);
    return texts.join('\n');
  }

  test('no bank number is in the database, the events or the log', async () => {
    const { userId, wallet } = await world.makeCustomer();
    const register = (body: object) =>
      world.operations.run('createUserExternalFiatAccount', { path: { user_id: userId }, body });
    const [german] = [await register(ibanAccount(iban)), await register(us)];
    // Refused, and refused by a provider whose error repeats what it was sent.
    await register({ ...us, account: { ...us.account, routing_number: '021000022' } });
    world.override({
      registerBankAccount: async ({ account }) => ({ fault: 'data', message: `no: ${account.type}` }),
    });
    const other = { ...us.account, account_number: '987650004322' };
    expect(await register({ ...us, account: other })).toMatchObject({
      status: 400,
      body: { code: 'invalid_data' },
    });
    world.override({});
    world.fiat.setUp(false);
    expect((await register({ ...us, account: other })).status).toBe(503);
    world.fiat.setUp(true);
    const { id } = (german.body as ExternalFiatAccountResponse).external_fiat_account;
    await world.operations.run('createFiatPayout', {
      path: { wallet_id: wallet.id },
      body: {
        source: { asset: 'usdc', chain: 'base', amount: '10' },
        destination: { fiat_account_id: id },
      },
      idempotencyKey: 'a payout',
    });
    const opened = await world.operations.run('createFiatDepositAccount', {
      path: { wallet_id: wallet.id },
      body: { ...at, source: { currency: 'usd' }, destination: { asset: 'usdc', chain: 'base' } },
    });
    const { deposit_instructions: instructions } = (opened.body as FiatDepositAccountResponse)
      .fiat_deposit_account;
    await world.wait(60);
    const all = `${await dump()}\n${JSON.stringify(logged)}`;
    expect(all).toContain('Alice Example');
    const numbers = [iban, iban.slice(4), us.account.account_number, other.account_number];
    for (const number of [...numbers, instructions!.bank_account_number!]) {
      expect(all.includes(number), `${number} stays behind`).toBe(false);
    }
  });
});
