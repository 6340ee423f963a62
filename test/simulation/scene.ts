import { addVault } from '../../src/domain/money/earn/earn-vault.ts';
import { assetNamed } from '../../src/engine/assets/known-assets.ts';
import { chainNamed } from '../../src/engine/assets/known-chains.ts';
import type { OperationContext } from '../../src/ports/operation-context.ts';
import { verify } from '../support/fiat/customers.ts';
import type { QuorumRule } from './authority.ts';
import { ruleFor } from './authority-scripts.ts';
import { approvalOf, cardChain, cardUsdc, environment, tokenOf } from './card-scripts.ts';
import { keyHolders, type Member } from './client.ts';
import { cap, makeModel } from './model.ts';
import { base, solana, usdc } from './money-scripts.ts';
import type { Scene } from './scripts.ts';
import { appId } from './server.ts';
import { SimulationFailure, type World } from './world.ts';

interface Made {
  readonly id: string;
  readonly address: string;
  readonly secret: string;
}

type Make = (id: Parameters<World['call']>[0], body: object, path?: Record<string, string>) => Promise<Made>;

/** What the wallets hold at first, in base units. */
export const firstMoney = { ether: 10n ** 21n, lamports: 10n ** 12n, usdc: 10n ** 10n };

/** Makes the owners, the wallets, their money, a vault, a bank account and a webhook endpoint, while everything works. */
export async function makeScene(world: World): Promise<Scene> {
  const make: Make = async (id, body, path = {}) => {
    const outcome = await world.call(id, { body, path });
    if (outcome.kind !== 'done') throw new SimulationFailure(`${id}: ${JSON.stringify(outcome)}`);
    return outcome.body as unknown as Made;
  };
  const [alice, bob, carol, dave] = keyHolders as [Member, Member, Member, Member];
  const first = { members: [alice, bob, carol], threshold: 2 };
  const second = { members: [dave, alice], threshold: 1 };
  const quorumOf = async ({ members, threshold }: QuorumRule): Promise<string> => {
    const public_keys = members.map(({ publicKey }) => publicKey);
    return (await make('createKeyQuorum', { public_keys, authorization_threshold: threshold })).id;
  };
  const quorums = { first: await quorumOf(first), second: await quorumOf(second) };
  const policy = await make('createPolicy', {
    ...{ version: '1.0', name: 'Treasury', chain_type: 'ethereum', owner_id: quorums.first },
    rules: [ruleFor('ALLOW')],
  });
  const endpoint = await make('createWebhookEndpoint', {
    url: 'https://hooks.acme.example/custos',
    event_types: ['*'],
  });
  const wallet = (body: object) => make('createWallet', body);
  const ethereum = { chain_type: 'ethereum' };
  const saver = await wallet(ethereum);
  const ids = {
    quorums,
    policy: policy.id,
    treasury: await wallet({ ...ethereum, owner_id: quorums.first, policy_ids: [policy.id] }),
    hot: await wallet(ethereum),
    sol: await wallet({ chain_type: 'solana' }),
    capped: await wallet({ ...ethereum, policy_ids: [await makeCappingPolicy(make)] }),
    saver,
    vault: await makeVault(world, saver),
    ...(await makePayer(world, make)),
    holder: await makeHolder(world, make, dave),
    endpoint: { id: endpoint.id, secret: endpoint.secret },
  };
  const fund = (caip2: string, { address }: Made, tokenAddress: string | null, rawAmount: bigint) =>
    world.outside.simulated.fund(caip2, { address, tokenAddress, rawAmount });
  for (const each of [ids.treasury, ids.hot, ids.saver, ids.payer])
    await fund(base, each, null, firstMoney.ether);
  for (const each of [ids.saver, ids.payer]) await fund(base, each, usdc, firstMoney.usdc);
  await fund(solana, ids.sol, null, firstMoney.lamports);
  return { world, model: makeModel({ first, second, owner: 'first', guard: 'policy', rules: 'ALLOW' }), ids };
}

async function makeCappingPolicy(make: Make): Promise<string> {
  const total = await make('createAggregation', {
    name: 'Spent in an hour',
    method: 'eth_signTransaction',
    metric: { field_source: 'ethereum_transaction', field: 'value', function: 'sum' },
    window: { type: 'rolling', seconds: cap.windowMs / 1000 },
  });
  const condition = {
    ...{ field_source: 'reference', field: `aggregation.${total.id}` },
    ...{ operator: 'lte', value: String(cap.rawAmount) },
  };
  const rule = { name: 'capped', method: 'eth_signTransaction', action: 'ALLOW', conditions: [condition] };
  const policy = { version: '1.0', name: 'Capped', chain_type: 'ethereum', rules: [rule] };
  return (await make('createPolicy', policy)).id;
}

/** The control plane would do this. */
async function makeVault({ outside, parts }: World, admin: Made): Promise<string> {
  const chain = chainNamed('base')!;
  const { tokenAddress, decimals } = assetNamed(chain, 'usdc')!;
  const plan = { asset: tokenAddress!, decimals, symbol: 'USDC', apyBps: 400, feeBps: 1000 };
  const address = await outside.simulated.earn.addVault(base, {
    ...{ ...plan, name: 'Vault', admin: admin.address },
    ...{ feeKind: 'claimable', offset: 0 },
  });
  const { services, database } = parts();
  const em = database.orm.em.fork() as OperationContext['em'];
  const vault = await em.transactional((inner) =>
    addVault(
      { em: inner as OperationContext['em'], nowMs: services.clock.now() },
      { appId, provider: 'aave', name: 'Vault', chain, address, adminWalletId: admin.id, feeBps: 1000 },
      { assetAddress: tokenAddress!, assetSymbol: 'USDC', assetDecimals: decimals },
    ),
  );
  return vault.id;
}

/** A verified user with a wallet and a bank account. */
async function makePayer(world: World, make: Make) {
  const user = await make('createUser', {
    linked_accounts: [{ type: 'email', address: 'payer@acme.example' }],
  });
  const { services, database } = world.parts();
  const entity = { type: 'user', id: user.id } as const;
  await verify({ services, database, fiat: world.outside.fiatControls, appId }, entity);
  const payer = await make('createWallet', { chain_type: 'ethereum', entity });
  const account = await make(
    'createUserExternalFiatAccount',
    {
      ...{ provider: 'bridge', environment: 'sandbox', account_owner_name: 'Alice Example', currency: 'eur' },
      account: {
        ...{ type: 'iban', account_number: 'DE89370400440532013000' },
        ...{ bic: 'COBADEFFXXX', country: 'DEU' },
      },
    },
    { user_id: user.id },
  );
  const { external_fiat_account: opened } = account as unknown as { external_fiat_account: Made };
  const receiver = await make('createWallet', { chain_type: 'ethereum', entity });
  const made = await make(
    'createFiatDepositAccount',
    {
      ...{ provider: 'bridge', environment: 'sandbox' },
      ...{ source: { currency: 'eur' }, destination: { asset: 'usdc', chain: 'base' } },
      developer_fee_percent: '1.25',
    },
    { wallet_id: receiver.id },
  );
  const { fiat_deposit_account: deposit } = made as unknown as { fiat_deposit_account: Made };
  const [row] = world.disk.all<{ id: string }>(
    'select virtual_account_id as id from fiat_deposit_accounts where id = ?',
    deposit.id,
  );
  return { payer, bankAccount: opened.id, receiver, depositAccount: row!.id };
}

/** A user who can have cards, with a wallet that lets the issuer spend from it. */
async function makeHolder(world: World, make: Make, signer: Member) {
  const user = await make('createUser', {
    linked_accounts: [{ type: 'email', address: 'holder@acme.example' }],
  });
  const owner = await make('createKeyQuorum', {
    ...{ user_ids: [user.id], public_keys: [signer.publicKey], authorization_threshold: 1 },
  });
  const wallet = await make('createWallet', { chain_type: 'ethereum', owner_id: owner.id });
  const asUser = async (id: 'createCardCustomer' | 'updateCardCustomer', body: object): Promise<void> => {
    const outcome = await world.call(id, { body }, { token: () => tokenOf(world, user.id) });
    if (outcome.kind !== 'done') throw new SimulationFailure(`${id}: ${JSON.stringify(outcome)}`);
  };
  await asUser('createCardCustomer', { environment });
  await asUser('updateCardCustomer', {
    ...{ environment, accept_bank_terms: true, accept_electronic_disclosure: true },
  });
  const [customer] = world.disk.all<{ id: string }>(
    'select customer_id as id from fiat_customers where entity_id = ?',
    user.id,
  );
  await world.outside.fiatControls.decide(environment, customer!.id, { outcome: 'approved' });
  const { simulated } = world.outside;
  await simulated.fund(cardChain, {
    ...{ address: wallet.address, tokenAddress: null, rawAmount: firstMoney.ether },
  });
  await simulated.fund(cardChain, {
    ...{ address: wallet.address, tokenAddress: cardUsdc, rawAmount: firstMoney.usdc },
  });
  const issuer = world.parts().services.cardIssuers.find(environment)!;
  const { spenderAddress } = await issuer.program();
  const transaction = { to: cardUsdc, data: approvalOf(spenderAddress, firstMoney.usdc), value: '0x0' };
  const approved = await world.call(
    'walletRpc',
    {
      path: { wallet_id: wallet.id },
      body: { method: 'eth_sendTransaction', caip2: cardChain, params: { transaction } },
    },
    { signers: [signer] },
  );
  if (approved.kind !== 'done') throw new SimulationFailure(`approval: ${JSON.stringify(approved)}`);
  await simulated.mine(cardChain, 1);
  return { userId: user.id, walletId: wallet.id };
}
