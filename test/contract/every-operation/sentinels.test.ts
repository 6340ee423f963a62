import { afterAll, beforeAll, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import type { Wallet } from '../../../src/generated/schemas.ts';
import { call, control } from '../../support/call.ts';
import { verifiedUser, walletOf } from '../../support/fiat/customers.ts';
import { fund } from '../../support/fund.ts';
import { startSandbox, type TestSandbox } from '../../support/sandbox.ts';

// Names, account numbers and recipients with which testers choose an outcome: from the request to the last event.
const bridge = { provider: 'bridge', environment: 'sandbox' } as const;
const usdc = '0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913';

let sandbox: TestSandbox;
beforeAll(async () => {
  sandbox = await startSandbox();
});
beforeEach(() => sandbox.reset());
afterAll(() => sandbox[Symbol.asyncDispose]());

interface Reported {
  readonly type: string;
  readonly changes?: Record<string, unknown>;
  readonly failure_reason?: { readonly message: string };
}

/** The payloads of the events of these types, oldest first. */
async function eventsOf(pattern: string): Promise<Reported[]> {
  const { body } = await control(sandbox, 'GET', `/_sandbox/events?type=${encodeURIComponent(pattern)}`);
  return (body.data as { payload: Reported }[]).map(({ payload }) => payload);
}
const typesOf = async (pattern: string) =>
  (await eventsOf(pattern)).map(({ type }) => type.split('.').at(-1));

async function pass(seconds: number): Promise<void> {
  const step = Math.max(3, seconds / 10);
  for (let passed = 0; passed < seconds; passed += step) {
    sandbox.clock.advance(step * 1000);
    await sandbox.settle();
  }
}

describe('names', () => {
  const address = { street_line_1: '1 Example Street', city: 'Berlin', country: 'DEU' };
  const document = { type: 'passport', issuing_country: 'DEU', number: 'C01X00T47' };
  const person = {
    ...{ first_name: 'Alice', last_name: 'Example', date_of_birth: '1990-04-12' },
    ...{ residential_address: address, identifying_information: [document] },
  };
  const outcomes = [
    ['Review', { status: 'under_review' }, [['not_started', 'under_review']]],
    [
      'Denied',
      { status: 'rejected' },
      [
        ['not_started', 'under_review'],
        ['under_review', 'rejected'],
      ],
    ],
    [
      'Incomplete',
      { status: 'incomplete', requirements_due: ['proof_of_address'] },
      [
        ['not_started', 'under_review'],
        ['under_review', 'incomplete'],
      ],
    ],
    [
      'Reviewer',
      { status: 'active' },
      [
        ['not_started', 'under_review'],
        ['under_review', 'active'],
      ],
    ],
  ] as const;

  test.each(outcomes)('a user whose last name is %s', async (last_name, status, changes) => {
    const { body: user } = await call(sandbox, 'createUser', {
      body: { linked_accounts: [{ type: 'email', address: 'alma@example.com' }] },
    });
    const path = { user_id: user.id };
    await call(sandbox, 'initiateUserKycTos', { path, body: bridge });
    const data = { ...person, last_name };
    await call(sandbox, 'submitUserKyc', { path, body: { ...bridge, data, client_agreement_id: 'terms-1' } });
    await pass(60);
    const { body } = await call(sandbox, 'listUserKyc', { path });
    expect(body.kyc_statuses).toMatchObject([status]);
    expect((await eventsOf('user.kyc.updated')).map((event) => event.changes?.status)).toEqual(changes);
  });

  test.each(outcomes)('an organization whose name begins with %s', async (first, status, changes) => {
    const { body: quorum } = await call(sandbox, 'createKeyQuorum', {
      body: { public_keys: [aliceKey.publicKey] },
    });
    const { body: organization } = await call(sandbox, 'createOrganization', {
      body: { display_name: 'Acme Europe', default_key_quorum_id: quorum.id },
    });
    const path = { organization_id: organization.id };
    const body = { ...bridge, email: 'finance@acme.example' };
    await call(sandbox, 'initiateOrganizationKybTos', { path, body });
    const data = {
      ...{ business_legal_name: `${first} Europe GmbH`, business_type: 'llc', registered_address: address },
      associated_persons: [
        {
          ...{ ...person, email: 'carol@acme.example' },
          ...{ has_ownership: true, has_control: true, is_signer: true },
        },
      ],
    };
    const submission = { ...bridge, data, client_agreement_id: 'terms-1' };
    await call(sandbox, 'submitOrganizationKyb', { path, body: submission });
    await pass(60);
    const { body: listed } = await call(sandbox, 'listOrganizationKyb', { path });
    expect(listed.kyb_statuses).toMatchObject([status]);
    expect((await eventsOf('organization.kyb.updated')).map((event) => event.changes?.status)).toEqual(
      changes,
    );
  });
});

describe('recipients and accounts', () => {
  let wallet: Wallet;
  let userId: string;
  beforeEach(async () => {
    userId = await verifiedUser(sandbox);
    wallet = await walletOf(sandbox, userId);
    await fund(sandbox, wallet.address, { chain: 'base', asset: 'eth', rawAmount: 10n ** 18n });
    await fund(sandbox, wallet.address, { chain: 'base', asset: 'usdc', rawAmount: 10n ** 9n });
  });
  const actionOf = async ({ id }: { id: string }) =>
    (
      await call(sandbox, 'getWalletAction', {
        path: { wallet_id: wallet.id, action_id: id },
        query: { include: 'steps' },
      })
    ).body;
  const held = async () => (await sandbox.chains.find('eip155:8453')!.balances(wallet.address, [usdc]))[0];

  const gaveBack = 'The payout provider gave the deposit back:';
  const payouts = [
    ['DE67370400440532010001', 'pending', undefined, 900_000_000n],
    ['DE13370400440532010003', 'failed', `${gaveBack} the bank returned the payment.`, 1_000_000_000n],
    [
      'DE83370400440532010004',
      'failed',
      `${gaveBack} the payment could not be delivered to the bank.`,
      1_000_000_000n,
    ],
    ['DE89370400440532013000', 'succeeded', undefined, 900_000_000n],
  ] as const;

  test.each(payouts)('a payout to %s is %s', async (number, status, message, left) => {
    const account = { type: 'iban', account_number: number, bic: 'COBADEFFXXX', country: 'DEU' } as const;
    const { body: registered } = await call(sandbox, 'createUserExternalFiatAccount', {
      path: { user_id: userId },
      body: { ...bridge, account_owner_name: 'Alice Example', currency: 'eur', account },
    });
    const { body: begun } = await call(sandbox, 'createFiatPayout', {
      path: { wallet_id: wallet.id },
      body: {
        source: { asset: 'usdc', chain: 'base', amount: '100' },
        destination: { fiat_account_id: registered.external_fiat_account.id },
      },
    });
    await pass(120);
    const ended = await actionOf(begun);
    expect(ended.status).toBe(status);
    expect(ended).toMatchObject(message === undefined ? {} : { failure_reason: { message } });
    expect(await held()).toBe(left);
    expect(await typesOf('wallet_action.payout.*')).toEqual(
      status === 'pending' ? ['created'] : ['created', status],
    );
  });

  const recipients = [
    ['dead0001', 'pending', 'pending'],
    ['dead0002', 'failed', 'replaced'],
    ['dead0003', 'failed', 'reverted'],
    ['dead0004', 'pending', 'queued'],
  ] as const;

  test.each(recipients)('a transfer to …%s is %s', async (end, status, step) => {
    const { body: begun } = await call(sandbox, 'transferFromWallet', {
      path: { wallet_id: wallet.id },
      body: {
        source: { asset: 'usdc', chain: 'base', amount: '100' },
        destination: { address: `0x${'00'.repeat(16)}${end}` },
      },
    });
    await pass(900);
    expect(await actionOf(begun)).toMatchObject({ status, steps: [{ status: step }] });
    expect(await held()).toBe(1_000_000_000n);
    expect(await typesOf('wallet_action.transfer.*')).toEqual(
      status === 'pending' ? ['created'] : ['created', status],
    );
  });

  test.each(recipients)('a swap whose output goes to …%s is %s', async (end, status, step) => {
    const { body: begun } = await call(sandbox, 'executeWalletSwap', {
      path: { wallet_id: wallet.id },
      body: {
        source: { asset_address: usdc, caip2: 'eip155:8453' },
        destination: { asset_address: 'native', destination_address: `0x${'00'.repeat(16)}${end}` },
        base_amount: '100000000',
      },
    });
    await pass(900);
    // The approval comes first, and has no recipient.
    expect(await actionOf(begun)).toMatchObject({
      status,
      steps: [{ status: 'confirmed' }, { status: step }],
    });
    expect(await held()).toBe(1_000_000_000n);
    expect(await typesOf('wallet_action.swap.*')).toEqual(
      status === 'pending' ? ['created'] : ['created', status],
    );
  });
});
