import type { FiatDepositAccountResponse } from '../../../src/generated/schemas.ts';
import { at, type FiatWorld, type KeptWorld, openFiatWorld } from './fiat-world.ts';

// A process that pays in and out on a world that its parent has closed, and kills itself at a point.

/** What the process does, one after the other. */
export type Order =
  | {
      readonly kind: 'payout';
      readonly walletId: string;
      readonly accountId: string;
      readonly amount: string;
      readonly nonce: string;
    }
  | {
      readonly kind: 'deposit';
      /** The account's id at the bank. */
      readonly accountId: string;
      readonly amount: string;
      readonly reference: string;
      readonly outcome: 'completed' | 'refunded';
    }
  | { readonly kind: 'wait'; readonly seconds: number };

export interface Plan {
  readonly kept: KeptWorld;
  readonly orders: readonly Order[];
  /** The name of the point, or its number. */
  readonly killAt: string | number;
}

/** Carries out an order. Repeated, it changes nothing. */
export async function carryOut(world: FiatWorld, order: Order): Promise<{ status: number; body: unknown }> {
  if (order.kind === 'wait') await world.wait(order.seconds);
  if (order.kind === 'deposit') {
    const { kind: _, ...deposit } = order;
    await world.fiat.receive(at.environment, deposit);
  }
  if (order.kind !== 'payout') return { status: 200, body: undefined };
  const { walletId, accountId, amount, nonce } = order;
  return world.payout(walletId, accountId, amount, { nonce });
}

/** The id at the bank of a wallet's deposit account, opened if it is not. */
export async function bankAccountOf(world: FiatWorld, walletId: string): Promise<string> {
  const { body } = await world.operations.run('createFiatDepositAccount', {
    path: { wallet_id: walletId },
    body: { ...at, source: { currency: 'eur' }, destination: { asset: 'usdc', chain: 'base' } },
  });
  const { id } = (body as FiatDepositAccountResponse).fiat_deposit_account;
  const em = world.operations.database.orm.em.fork();
  const sql = 'select virtual_account_id as id from fiat_deposit_accounts where id = ?';
  const [row] = await em.execute<{ id: string }[]>(sql, [id]);
  return row!.id;
}

function killMyself(): never {
  process.kill(process.pid, 'SIGKILL');
  // The signal is on its way; nothing else may happen before.
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0);
  throw new Error('still alive');
}

if (process.argv[1] === import.meta.filename) {
  const { kept, orders, killAt } = JSON.parse(process.argv[2]!) as Plan;
  let count = 0;
  const onPoint = (name: string): void => {
    count += 1;
    if (count === killAt || name === killAt) killMyself();
  };
  const world = await openFiatWorld(kept.kind, { kept, onPoint });
  for (const order of orders) await carryOut(world, order);
  // Fewer points than that.
  process.exit(0);
}
