import { randomUUID } from 'node:crypto';
import { Chacha20Poly1305 } from '@hpke/chacha20poly1305';
import { CipherSuite, DhkemP256HkdfSha256, HkdfSha256 } from '@hpke/core';
import { encodeFunctionData, erc20Abi } from 'viem';
import { issueAccessToken } from '../../../src/domain/wallets/tokens/access-tokens.ts';
import type { Card, IntegrationEnvironment, Wallet } from '../../../src/generated/schemas.ts';
import { createNotes, type OperationContext } from '../../../src/ports/operation-context.ts';
import { type CallOptions, call } from '../call.ts';
import { fund } from '../fund.ts';
import { control } from '../other-app.ts';
import type { TestSandbox } from '../sandbox.ts';

export const chainId = 'eip155:84532';
const usdc = '0x036CbD53842c5426634e7929541eC2318f3dCF7e';
export const environment: IntegrationEnvironment = 'sandbox';

/** A user who can have cards, with a wallet that the user owns. */
export interface Holder {
  readonly userId: string;
  readonly wallet: Wallet;
  /** The options with which a request is sent with the user's access token. */
  readonly as: CallOptions;
  /** The key that signs for the wallet. */
  readonly key: string;
}

export async function tokenOf(sandbox: TestSandbox, userId: string): Promise<string> {
  const { services, appId, clock } = sandbox;
  const em = sandbox.database.orm.em.fork();
  return em.transactional((inner) =>
    issueAccessToken(
      {
        ...services,
        em: inner as OperationContext['em'],
        notes: createNotes(),
        app: { id: appId },
        nowMs: clock.now(),
      },
      { userId, sessionId: randomUUID() },
    ),
  );
}

type Account = { type: 'email'; address: string } | { type: 'custom_auth'; custom_user_id: string };

export async function newUser(
  sandbox: TestSandbox,
  account: Account = { type: 'email', address: `card-${randomUUID()}@example.com` },
): Promise<{ userId: string; as: CallOptions }> {
  const { body } = await call(sandbox, 'createUser', { body: { linked_accounts: [account] } });
  const token = await tokenOf(sandbox, body.id);
  return { userId: body.id, as: { headers: { authorization: `Bearer ${token}` } } };
}

/** Creates a user with a wallet, before the first step towards cards. */
export async function newHolder(sandbox: TestSandbox): Promise<Holder> {
  const { userId, as } = await newUser(sandbox);
  const { body: wallet } = await call(sandbox, 'createWallet', {
    body: { chain_type: 'ethereum', owner: { user_id: userId } },
  });
  const user_jwt = await tokenOf(sandbox, userId);
  const { body } = await call(sandbox, 'authenticateWallets', { body: { user_jwt } });
  if (!('authorization_key' in body)) throw new Error('the key came sealed');
  return { userId, as, wallet, key: body.authorization_key };
}

/** Takes all steps up to the status `ready`. */
export async function makeReady(sandbox: TestSandbox, { userId, as }: Pick<Holder, 'userId' | 'as'>) {
  await call(sandbox, 'createCardCustomer', { body: { environment } }, as);
  const accepts = { accept_bank_terms: true, accept_electronic_disclosure: true };
  await call(sandbox, 'updateCardCustomer', { body: { environment, ...accepts } }, as);
  await control(sandbox, 'POST', 'verifications', { user_id: userId, environment, outcome: 'approved' });
}

/** Creates a user with a card, a wallet with `cents` of USDC, and an approval of the same amount. */
export async function cardHolder(
  sandbox: TestSandbox,
  cents: bigint,
): Promise<Holder & { readonly card: Card }> {
  const holder = await newHolder(sandbox);
  await makeReady(sandbox, holder);
  const { body: card } = await call(sandbox, 'createCard', cardFor(holder.wallet), holder.as);
  const { address } = holder.wallet;
  await fund(sandbox, address, { chain: 'base_sepolia', asset: 'eth', rawAmount: 10n ** 18n });
  await fund(sandbox, address, { chain: 'base_sepolia', asset: 'usdc', rawAmount: cents * 10_000n });
  await approve(sandbox, holder, cents);
  return { ...holder, card };
}

export function cardFor({ id }: Pick<Wallet, 'id'>) {
  return { body: { wallet_id: id, asset: 'usdc', chain_id: chainId, environment } } as const;
}

/** The owner signs an approval of the issuer's account. A block includes it before this returns. */
export async function approve(sandbox: TestSandbox, { wallet, key }: Holder, cents: bigint): Promise<void> {
  const { body: config } = await call(sandbox, 'getCardConfig', {
    path: { app_id: sandbox.appId },
    query: { environment },
  });
  const spender = config.data.spender_address as `0x${string}`;
  const data = encodeFunctionData({
    abi: erc20Abi,
    functionName: 'approve',
    args: [spender, cents * 10_000n],
  });
  await call(
    sandbox,
    'walletRpc',
    {
      path: { wallet_id: wallet.id },
      body: {
        method: 'eth_sendTransaction',
        caip2: chainId,
        params: { transaction: { to: usdc, data, value: 0 } },
      } as never,
    },
    { signWith: [key] },
  );
  await sandbox.chains.mine(chainId, 1);
}

/** Returns the balance of a wallet in cents. */
export async function centsOf(sandbox: TestSandbox, address: string): Promise<bigint> {
  const [raw = 0n] = await sandbox.chains.find(chainId)!.balances(address, [usdc]);
  if (raw % 10_000n !== 0n) throw new Error(`${raw} is not a whole number of cents`);
  return raw / 10_000n;
}

/** Encrypts a PIN like the page of an app. */
export async function encryptPin(publishableKey: string, pin: string): Promise<string> {
  const suite = new CipherSuite({
    kem: new DhkemP256HkdfSha256(),
    kdf: new HkdfSha256(),
    aead: new Chacha20Poly1305(),
  });
  const point = Buffer.from(publishableKey.replace('pk_test_', ''), 'base64url');
  const sender = await suite.createSenderContext({
    recipientPublicKey: await suite.kem.deserializePublicKey(point),
  });
  const ciphertext = await sender.seal(Buffer.from(pin));
  return Buffer.concat([Buffer.from(sender.enc), Buffer.from(ciphertext)]).toString('base64');
}
