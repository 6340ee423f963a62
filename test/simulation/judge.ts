import { createHmac } from 'node:crypto';
import { makeAuditJudge } from './audit-judge.ts';
import { environment } from './card-scripts.ts';
import { exceededWindow, mayHold, type Payment } from './model.ts';
import { base, solana, usdc } from './money-scripts.ts';
import { firstMoney } from './scene.ts';
import { read, type Scene } from './scripts.ts';
import { SimulationFailure } from './world.ts';

/** An event as recorded. */
interface RecordedEvent {
  readonly sequence: number;
  readonly id: string;
  readonly type: string;
  readonly resourceId: string | null;
  /** The wallet action that it is about. */
  readonly actionId: string | null;
  /** The deposit at a bank that it is about, and what arrived of it. */
  readonly depositId: string | null;
  readonly arrived: string | null;
}

/** Compares what is stored, sent and held with what must be true. */
export interface Judge {
  afterStep(): Promise<void>;
  /** When nothing is in progress and everything outside works. */
  atEnd(): Promise<void>;
  /** Whether nothing is left to be done. */
  isAtRest(): boolean;
  readonly eventCount: number;
  readonly recordCount: number;
}

const ended = ['succeeded', 'rejected', 'failed'];

export function makeJudge(scene: Scene): Judge {
  const { world, model } = scene;
  const { disk, outside } = world;
  const audit = makeAuditJudge(scene);
  const events: RecordedEvent[] = [];
  const ids = new Set<string>();
  const byAction = new Map<string, string[]>();
  const byResource = new Map<string, string[]>();
  const byDeposit = new Map<string, string[]>();
  /** What was reported as arrived from the bank, in base units. */
  let arrived = 0n;
  const given = new Map<string, bigint>();
  /** Events whose deliveries have failed for the last time. */
  const givenUp = new Set<string>();
  let wasDisabled = false;
  let judgedChanges = -1;

  function require(isTrue: boolean, message: () => string): void {
    if (!isTrue) throw new SimulationFailure(message());
  }

  function readEvents(): void {
    const last = events.at(-1)?.sequence ?? 0;
    const rows = disk.all<RecordedEvent>(
      `select sequence, id, type, resource_id as resourceId,
         json_extract(payload, '$.wallet_action_id') as actionId,
         json_extract(payload, '$.provider_deposit_id') as depositId,
         json_extract(payload, '$.data.destination.amount') as arrived
       from outbox_events where sequence > ? order by sequence`,
      last,
    );
    for (const event of rows) {
      require(!ids.has(event.id), () => `two events have the id ${event.id}`);
      ids.add(event.id);
      events.push(event);
      world.note(`event ${event.type} ${event.id}`);
      if (event.actionId !== null) add(byAction, event.actionId, event.type);
      if (event.depositId !== null) add(byDeposit, event.depositId, event.type.split('.').at(-1)!);
      if (event.type === 'wallet.deposit_account.deposit_completed')
        arrived += millionths(event.arrived ?? '');
      if (event.resourceId !== null) add(byResource, event.resourceId, event.type);
    }
  }

  /** Old deliveries are deleted, so what became of them is noted in time. */
  function readDeliveries(): void {
    const failed = disk.all<{ id: string }>(
      "select event_id as id from webhook_deliveries where status = 'failed'",
    );
    for (const { id } of failed) givenUp.add(id);
    const endpoints = disk.all<{ status: string }>('select status from webhook_endpoints');
    if (endpoints.some(({ status }) => status !== 'enabled')) wasDisabled = true;
  }

  /** Each change of an action, an intent, a user and a wallet has its event, once and in order. */
  function checkEvents(): void {
    const actions = disk.all<{ id: string; type: string; status: string }>(
      'select id, type, status from wallet_actions',
    );
    for (const { id, type, status } of actions) {
      const expected = [`wallet_action.${type}.created`];
      if (ended.includes(status)) expected.push(`wallet_action.${type}.${status}`);
      requireEvents(`${type} ${id}`, byAction.get(id) ?? [], expected);
    }
    const counted = actions.length;
    require(byAction.size === counted, () => `events of ${byAction.size} actions, of which ${counted} exist`);
    const intents = disk.all<{ id: string; status: string; signatures: number }>(
      `select id, status,
         (select count(*) from intent_signatures where intent_id = intents.id) as signatures from intents`,
    );
    for (const { id, status, signatures } of intents) {
      const expected = ['intent.created', ...Array.from({ length: signatures }, () => 'intent.authorized')];
      if (['executed', 'failed', 'rejected'].includes(status)) expected.push(`intent.${status}`);
      requireEvents(`the intent ${id}`, byResource.get(id) ?? [], expected);
    }
    for (const { id } of disk.all<{ id: string }>('select id from users'))
      requireEvents(`the user ${id}`, (byResource.get(id) ?? []).slice(0, 1), ['user.created']);
    for (const [id, types] of byDeposit) {
      const isRight = /^deposit_started(,deposit_(completed|failed))?$/.test(types.join());
      require(isRight, () => `the deposit ${id} has the events ${types}`);
    }
    const archived = disk.all<{ id: string }>('select id from wallets where archived_at_ms is not null');
    for (const { id } of archived) {
      const own = (byResource.get(id) ?? []).filter((type) => type === 'wallet.archived');
      requireEvents(`the wallet ${id}`, own, ['wallet.archived']);
    }
  }

  function requireEvents(what: string, found: readonly string[], expected: readonly string[]): void {
    require(found.join() === expected.join(), () => `${what} has the events ${found}, expected ${expected}`);
  }

  async function heldBy({ caip2, recipient }: Payment): Promise<bigint> {
    const [balance] = await outside.simulated.find(caip2)!.balances(recipient, [null]);
    return balance!;
  }

  async function checkPayments(payments: readonly Payment[]): Promise<void> {
    for (const payment of payments) {
      const held = await heldBy(payment);
      require(mayHold(payment).includes(held), () =>
        `${payment.recipient} holds ${held}, expected one of ${mayHold(payment)} (${payment.knowledge})`);
    }
  }

  function checkTotals(): void {
    const exceeded = exceededWindow(model.spendings);
    require(exceeded === undefined, () => `the running total allows 100 in an hour: ${exceeded}`);
  }

  /** What the faucet gave out is somewhere, in every asset. */
  async function checkBooks(): Promise<void> {
    for (const { caip2, tokenAddress, given: out, minted, held } of await outside.simulated.books()) {
      const sum = Object.values(held).reduce((total, each) => total + each, 0n);
      require(sum === out + minted, () =>
        `${tokenAddress ?? 'native'} on ${caip2}: ${sum} of ${out + minted}`);
      const key = `${caip2} ${tokenAddress}`;
      const before = given.get(key) ?? out;
      if (tokenAddress === null) require(before === out, () => `the faucet gave ${out - before} more`);
      given.set(key, out);
    }
  }

  async function checkOutcome(payment: Payment): Promise<void> {
    const held = await heldBy(payment);
    const status = await statusOf(scene, payment);
    if (status === undefined) return;
    world.note(`ended ${payment.recipient} ${status} ${held}`);
    world.count(`${payment.action ? 'transfer' : payment.intent ? 'intent' : 'transaction'} ${status}`);
    const outcome = arrival(status);
    require(outcome !== undefined, () =>
      `${payment.recipient} is still ${status} after everything has ended`);
    const expected = outcome === 'arrived' ? payment.rawAmount : 0n;
    require(held === expected, () => `${payment.recipient} is ${status} and holds ${held}`);
  }

  /** The wallet holds what it had, less what was paid out; the bank has the rest. */
  async function checkPayouts(): Promise<void> {
    const [held] = await outside.simulated.find(base)!.balances(scene.ids.payer.address, [usdc]);
    let [least, most] = [firstMoney.usdc, firstMoney.usdc];
    for (const { rawAmount, knowledge, actionId } of model.payouts) {
      if (knowledge === 'refused') continue;
      const action = { walletId: scene.ids.payer.id, id: actionId ?? '' };
      const status = actionId === undefined ? undefined : await statusOf(scene, { action });
      world.count(`payout ${status}`);
      if (status === undefined || status === 'succeeded') least -= rawAmount;
      if (status === 'succeeded') most -= rawAmount;
    }
    require(held! >= least && held! <= most, () => `the payer holds ${held}, not ${least} to ${most}`);
    for (const book of await outside.fiatControls.books()) {
      const cents = (name: keyof typeof book): bigint => BigInt(String(book[name]).replace('.', ''));
      const [had, has] = [cents('capital') + cents('paid_in'), cents('paid_out') + cents('refunded')];
      const fees = cents('fees') + cents('developer_fees');
      require(had === has + fees + cents('balance'), () => `the bank: ${JSON.stringify(book)}`);
    }
  }

  /** What was paid in has arrived, or was sent back, and was reported once. */
  async function checkBankDeposits(): Promise<void> {
    for (const { id, outcome } of model.bankDeposits) {
      const last = outcome === 'completed' ? 'deposit_completed' : 'deposit_failed';
      requireEvents(`the deposit ${id}`, byDeposit.get(id) ?? [], ['deposit_started', last]);
    }
    const known = model.bankDeposits.length;
    require(byDeposit.size === known, () => `events of ${byDeposit.size} deposits, of which ${known} exist`);
    const [held] = await outside.simulated.find(base)!.balances(scene.ids.receiver.address, [usdc]);
    require(held === arrived, () => `the receiver holds ${held}, and ${arrived} was reported`);
    world.count(`bank deposits ${known === 0 ? 'none' : 'arrived'}`);
  }

  /** What users know of their cards is so here and at the issuer. */
  async function checkCards(): Promise<void> {
    const issuer = outside.cardIssuers.find(environment)!;
    for (const { id, issuerId, isCanceled, status, changes } of model.cards) {
      const [row] = disk.all<{ status: string }>('select status from cards where id = ?', id);
      require(row !== undefined, () => `the card ${id} is lost`);
      const expected = isCanceled ? 'canceled' : changes === 0 ? status : undefined;
      if (expected === undefined) continue;
      const reported = await issuer.change(issuerId, {});
      const there = 'fault' in reported ? 'canceled' : reported.status;
      require(row!.status === expected && there === expected, () =>
        `the card ${id} must be ${expected}, is ${row!.status} here and ${there} at the issuer`);
    }
  }

  /** The settings are some that may be, after all that clients know. */
  function checkAuthority(): void {
    const { treasury, quorums, policy } = scene.ids;
    const [wallet] = disk.all<{ owner: string; policy: string | null }>(
      'select owner_id as owner, policy_id as policy from wallets where id = ?',
      treasury.id,
    );
    const owners = model.authority.possible('owner').map((name) => quorums[name]);
    require(owners.includes(wallet!.owner), () => `the treasury is owned by ${wallet!.owner}`);
    const guards = model.authority.possible('guard').map((guard) => (guard === 'none' ? null : policy));
    require(guards.includes(wallet!.policy), () => `the treasury has the policy ${wallet!.policy}`);
    for (const name of ['first', 'second'] as const) {
      const [quorum] = disk.all<{ threshold: number }>(
        'select authorization_threshold as threshold from key_quorums where id = ?',
        quorums[name],
      );
      const found = model.authority.possible(name).map(({ threshold }) => threshold);
      require(found.includes(quorum!.threshold), () => `${name} has the threshold ${quorum!.threshold}`);
    }
  }

  /** What was proposed about something that has changed since cannot be executed any more. */
  function checkDismissed(): void {
    // The clock may be set back by some seconds, to before an expiry.
    const pending = disk.all<{ id: string }>(
      "select id from intents where status = 'pending' and expires_at_ms > ?",
      world.clock.nowMs + 10_000,
    );
    const open = new Set(pending.map(({ id }) => id));
    for (const { id, isDismissed } of model.intents)
      require(!isDismissed || !open.has(id), () => `${id} is pending, and its resource has changed`);
  }

  /** Every event has reached the endpoint, in the order of its resource, with a valid signature. */
  function checkDeliveries(): void {
    const { secret } = scene.ids.endpoint;
    const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
    const firstOf = new Map<string, number>();
    for (const [index, { id, headers, bodyText, answer }] of outside.received.entries()) {
      const signed = `${id}.${headers['webhook-timestamp']}.${bodyText}`;
      const signature = `v1,${createHmac('sha256', key).update(signed).digest('base64')}`;
      require(headers['webhook-signature'] === signature, () => `the delivery ${id} is not signed`);
      if (answer === 'accepted' && !firstOf.has(id)) firstOf.set(id, index);
    }
    const lastOf = new Map<string, number>();
    for (const { id, type, resourceId } of events) {
      const at = firstOf.get(id);
      const mayBeMissing = givenUp.has(id) || wasDisabled;
      require(at !== undefined || mayBeMissing, () => `the event ${type} ${id} was never delivered`);
      if (resourceId === null || at === undefined) continue;
      require(at > (lastOf.get(resourceId) ?? -1), () =>
        `${type} ${id} was delivered before an earlier event`);
      lastOf.set(resourceId, at);
    }
  }

  return {
    get eventCount() {
      return events.length;
    },
    get recordCount() {
      return audit.recordCount;
    },
    isAtRest() {
      const [left] = disk.all<{ count: number }>(
        `select (select count(*) from wallet_actions where status = 'pending')
           + (select count(*) from intents where status = 'processing')
           + (select count(*) from webhook_deliveries where status = 'pending')
           + (select count(*) from fiat_deposits where state not in ('completed', 'failed'))
           + (select count(*) from outbox_events where fanned_out_at_ms is null)
           + (select count(*) from audit_pending)
           + (select count(*) from (select note from audit_checkpoints order by size desc limit 1) where note is null)
           + (select count(*) from transactions where status in ('pending', 'broadcasted', 'confirmed')) as count`,
      );
      const ended = [...byDeposit.values()].filter((types) => types.length > 1).length;
      return left!.count === 0 && ended === model.bankDeposits.length;
    },
    async afterStep() {
      require(!disk.isInTransaction, () => 'a transaction is open while nothing runs');
      const changes = disk.changeCount();
      // What is only about tables is as it was judged.
      if (changes !== judgedChanges) {
        readEvents();
        readDeliveries();
        audit.afterChange();
        checkEvents();
        judgedChanges = changes;
      }
      audit.checkAnswers();
      checkTotals();
      checkAuthority();
      checkDismissed();
      // Those that may still change.
      await checkPayments(model.payments.slice(-8));
    },
    async atEnd() {
      readEvents();
      checkEvents();
      checkTotals();
      await checkPayments(model.payments);
      await checkBooks();
      for (const payment of model.payments) await checkOutcome(payment);
      await checkPayouts();
      await checkBankDeposits();
      await checkCards();
      checkAuthority();
      checkDeliveries();
      await checkWallets(scene);
      audit.atEnd();
    },
  };
}

/** Base units of a decimal of six digits. */
function millionths(text: string): bigint {
  const [whole = '', fraction = ''] = text.split('.');
  return BigInt(whole + fraction.padEnd(6, '0'));
}

const add = (lists: Map<string, string[]>, key: string, value: string): void => {
  const list = lists.get(key);
  if (list === undefined) lists.set(key, [value]);
  else list.push(value);
};

/** Whether money that is reported with this status is there; undefined while it is on its way. */
function arrival(status: string): 'arrived' | 'did not arrive' | undefined {
  if (['succeeded', 'executed', 'finalized', 'confirmed'].includes(status)) return 'arrived';
  const without = ['rejected', 'failed', 'expired', 'dismissed', 'pending intent', 'execution_reverted'];
  return [...without, 'replaced', 'provider_error'].includes(status) ? 'did not arrive' : undefined;
}

/** What the server says about a payment; undefined if its client does not know how to ask. */
async function statusOf(
  scene: Scene,
  { action, transactionId, intent }: Pick<Payment, 'action' | 'transactionId' | 'intent'>,
): Promise<string | undefined> {
  if (action !== undefined) {
    const path = { wallet_id: action.walletId, action_id: action.id };
    return statusIn(await read(scene, 'getWalletAction', { path }));
  }
  if (transactionId !== undefined)
    return statusIn(await read(scene, 'getTransaction', { path: { transaction_id: transactionId } }));
  if (intent === undefined) return undefined;
  const status = statusIn(await read(scene, 'getIntent', { path: { intent_id: intent.id } }));
  return status === 'pending' ? 'pending intent' : status;
}

function statusIn(outcome: { kind: string; body?: unknown; message?: string }): string {
  if (outcome.kind !== 'done')
    throw new SimulationFailure(`something acknowledged is lost: ${outcome.message}`);
  return (outcome.body as { status: string }).status;
}

/** What was acknowledged is there, and nothing else. */
async function checkWallets(scene: Scene): Promise<void> {
  const { world, model } = scene;
  const listed = new Map<string, { archived_at: number | null; external_id?: string }>();
  for (let cursor: string | undefined; ; ) {
    const query: Record<string, string> = { limit: '100', ...(cursor === undefined ? {} : { cursor }) };
    const page = await read(scene, 'listWallets', { query });
    if (page.kind !== 'done') throw new SimulationFailure(`wallets cannot be listed: ${page.message}`);
    const { data, next_cursor } = page.body as unknown as {
      data: { id: string; archived_at: number | null; external_id?: string }[];
      next_cursor: string | null;
    };
    for (const each of data) listed.set(each.id, each);
    if (next_cursor === null) break;
    cursor = next_cursor;
  }
  for (const { id, archived } of model.wallets) {
    const found = listed.get(id);
    if (found === undefined) {
      // Lists may leave out archived ones.
      if (archived === 'refused') throw new SimulationFailure(`the wallet ${id} is lost`);
      continue;
    }
    const isArchived = found.archived_at !== null;
    if (archived === 'acknowledged' && !isArchived)
      throw new SimulationFailure(`${id} is not archived any more`);
    if (archived === 'refused' && isArchived) throw new SimulationFailure(`no client has archived ${id}`);
  }
  const external = [...listed.values()].flatMap(({ external_id }) => external_id ?? []);
  if (new Set(external).size !== external.length)
    throw new SimulationFailure('two wallets have the same external id');
  const wanted = new Set(
    model.creations.filter(({ knowledge }) => knowledge !== 'refused').map(({ externalId }) => externalId),
  );
  for (const id of external)
    if (!wanted.has(id)) throw new SimulationFailure(`no client has created the wallet ${id}`);
  world.note(`wallets ${listed.size} ${base} ${solana}`);
}
