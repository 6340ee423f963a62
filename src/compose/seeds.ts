import assert from 'node:assert/strict';
import type { SqlEntityManager } from '@mikro-orm/sql';
import { acmeApp } from '../../mocks/apps.ts';
import { usdcVault } from '../../mocks/earn-vaults.ts';
import { aliceQuorum, bobQuorum, treasuryQuorum } from '../../mocks/key-quorums.ts';
import { spendingPolicy } from '../../mocks/policies.ts';
import { aliceUser, bobUser } from '../../mocks/users.ts';
import {
  acmeSolanaWallet,
  acmeWallet,
  aliceWallet,
  fundedWallets,
  treasuryWallet,
} from '../../mocks/wallets.ts';
import type { SandboxConfig } from '../config/config.ts';
import type { AppSettings } from '../domain/access/apps/app.entity.ts';
import { createApp, rotateAppSecret, updateApp } from '../domain/access/apps/app.ts';
import { checkAppSettings } from '../domain/access/apps/app-settings.ts';
import { getApp, hashAppSecret, secretsInForce } from '../domain/access/apps/find-app.ts';
import { sealTestCodes } from '../domain/access/apps/test-account-codes.ts';
import { dropEvents } from '../domain/base/events/events.ts';
import { EarnVaultEntity } from '../domain/money/earn/earn-vault.entity.ts';
import { addVault } from '../domain/money/earn/earn-vault.ts';
import { assetNamed } from '../engine/assets/known-assets.ts';
import { chainNamed } from '../engine/assets/known-chains.ts';
import { ApiError } from '../errors.ts';
import type { OperationId, Operations } from '../generated/operations.ts';
import { registry } from '../generated/registry.ts';
import type { OperationContext, Services } from '../ports/operation-context.ts';
import type { SimulatedLogin } from '../sandbox/control-plane.ts';
import type { SimulatedChains } from '../sandbox/simulated/chains/simulated-chains.ts';
import { handlersOf } from '../server/operation-contexts.ts';
import { inUnitOf, unitsOf } from '../server/unit-of-work.ts';
import type { Database } from '../storage/open-database.ts';
import { fundSeeds } from './funds.ts';
import type { SandboxEntropy } from './sandbox-entropy.ts';

/** The operations that create a resource from a body alone. */
type Creation = 'createUser' | 'createKeyQuorum' | 'createPolicy' | 'createWallet';

/** Alice's key quorum, and Bob as a user. Each is undefined if its operation is not implemented. */
interface SeededOwners {
  readonly alice: { readonly id: string } | undefined;
  readonly bobUser: { readonly id: string } | undefined;
}

/** Creates the named seed data through the handlers of the API. */
async function plantSeedData(
  context: OperationContext,
  simulates: (caip2: string) => boolean,
): Promise<SeededOwners> {
  const plant = <Id extends Creation & OperationId>(id: Id, body: Operations[Id]['body']) =>
    createSeeded(context, id, body);
  const alice = await plant('createUser', aliceUser);
  const bob = await plant('createUser', bobUser);
  const ofAlice = await plant('createKeyQuorum', { ...aliceQuorum, ...membersOf(alice) });
  const quorum = await plant('createKeyQuorum', treasuryQuorum);
  const policy = await plant('createPolicy', spendingPolicy);
  const acme = await plant('createWallet', acmeWallet);
  await plant('createWallet', acmeSolanaWallet);
  await plant('createWallet', { ...aliceWallet, ...ownedBy(ofAlice) });
  await plant('createWallet', {
    ...treasuryWallet,
    ...ownedBy(quorum),
    ...(policy === undefined ? {} : { policy_ids: [policy.id] }),
  });
  const owners = { alice: ofAlice, bobUser: bob };
  const { asset, address, ...vault } = seededVault();
  if (acme === undefined || !simulates(vault.chain.caip2)) return owners;
  const facts = {
    ...{ assetAddress: asset.address, assetSymbol: asset.symbol, assetDecimals: asset.decimals },
  };
  await addVault(context, { ...vault, address, appId: context.app.id, adminWalletId: acme.id }, facts);
  return owners;
}

function membersOf(user: { readonly id: string } | undefined) {
  return user === undefined ? {} : { user_ids: [user.id] };
}

function ownedBy(quorum: { readonly id: string } | undefined) {
  return quorum === undefined ? {} : { owner_id: quorum.id };
}

/** Creates the wallets that exist only in a sandbox with funds. */
async function plantFundedWallets(
  context: OperationContext,
  { alice, bobUser }: SeededOwners,
): Promise<void> {
  const ofBob = await createSeeded(context, 'createKeyQuorum', { ...bobQuorum, ...membersOf(bobUser) });
  const owners = { alice, bob: ofBob };
  for (const { owner, body } of fundedWallets) {
    await createSeeded(context, 'createWallet', { ...body, ...(owner && ownedBy(owners[owner])) });
  }
}

/** Returns the vault of the seed data, with its chain and asset. */
function seededVault() {
  const { chain: chainName, asset: assetName, apyBps: _, ...vault } = usdcVault;
  const chain = chainNamed(chainName);
  const asset = chain && assetNamed(chain, assetName);
  assert(chain !== undefined && asset?.tokenAddress != null, 'the vault of the seeds has an unknown asset');
  const { tokenAddress, decimals } = asset;
  return { ...vault, chain, asset: { address: tokenAddress, symbol: assetName.toUpperCase(), decimals } };
}

/**
 * Arranges that the smart contract of the seed data's vault is created when its simulated chain is first used. Does
 * nothing if the vault is not stored.
 */
async function planSeededVault(
  em: SqlEntityManager,
  chains: Pick<SimulatedChains, 'has' | 'earn'>,
): Promise<void> {
  const row = await em.findOne(EarnVaultEntity, { id: usdcVault.id });
  if (row === null || !chains.has(row.caip2)) return;
  const { address, assetAddress: asset, assetSymbol: symbol, assetDecimals: decimals, feeBps } = row;
  chains.earn.planVault(row.caip2, {
    ...{ address, asset, symbol, decimals, feeBps, admin: row.adminAddress, apyBps: usdcVault.apyBps },
    ...{ feeKind: 'claimable', offset: 0 },
  });
}

/** Creates a resource and returns it, or returns undefined if the operation is not implemented. */
async function createSeeded<Id extends Creation>(
  context: OperationContext,
  id: Id,
  body: Operations[Id]['body'],
): Promise<Operations[Id]['response'] | undefined> {
  const { plan, run: handler } = handlersOf(registry)[id]!;
  const input = { path: {}, query: {}, body };
  try {
    const planned = { value: await plan?.(input, context) };
    return (await handler(input, context, planned)) as Operations[Id]['response'];
  } catch (error) {
    if (error instanceof ApiError && error.code === 'not_implemented') return undefined;
    throw error;
  }
}

/** What is needed to create the initial data of a sandbox. */
export interface Seeds {
  readonly config: Pick<SandboxConfig, 'seedData' | 'funds' | 'jwtPublicKeyPem'>;
  readonly appId: string;
  readonly appSecret: string;
  readonly services: Services;
  readonly database: Database;
  readonly chains: Pick<SimulatedChains, 'has' | 'earn' | 'fund'>;
  readonly randomness: Pick<SandboxEntropy, 'apart'>;
  /** The simulated login. The app accepts its tokens unless another key is configured. */
  readonly login: () => Pick<SimulatedLogin, 'verificationKey'>;
}

/** Creates the app and, if configured, the named seed data in an empty database. */
export async function plantSeeds(seeds: Seeds): Promise<void> {
  await inTransaction(seeds, async (context) => {
    const simulated = { jwt_auth: { verification_key: seeds.login().verificationKey } };
    const wanted = { ...simulated, ...settingsOf(seeds), ...acmeApp.settings };
    const settings = checkAppSettings(wanted, context);
    await createApp(context, {
      id: seeds.appId,
      name: acmeApp.name,
      secret: seeds.appSecret,
      settings: await sealTestCodes(context.keyStore, seeds.appId, settings),
    });
    if (seeds.config.seedData) {
      const owners = await plantSeedData(context, seeds.chains.has);
      // Use a separate stream, so that a seed yields the same ids and keys with and without funds.
      if (seeds.config.funds) {
        await seeds.randomness.apart('funded wallets', () => plantFundedWallets(context, owners));
      }
    }
    // CHOICE: seed data creates no events, because it represents the state before any endpoint existed.
    await dropEvents(context.em);
  });
  await planVaults(seeds);
  if (seeds.config.seedData && seeds.config.funds) await fundSeeds(seeds);
}

async function planVaults({ config, database, chains }: Seeds): Promise<void> {
  if (config.seedData) await planSeededVault(database.orm.em.fork(), chains);
}

/**
 * Creates the initial data. If the app already exists, only updates its credentials and settings. Returns whether the
 * data was created.
 */
export async function ensureSeeds(seeds: Seeds): Promise<boolean> {
  const app = await getApp(seeds.database.orm.em.fork(), seeds.appId);
  if (app === undefined) {
    await plantSeeds(seeds);
    return true;
  }
  await planVaults(seeds);
  await inTransaction(seeds, async (context) => {
    const wanted = hashAppSecret(seeds.appSecret, context.nowMs).hash;
    const isKnown = secretsInForce(app.secretHashes, context.nowMs).some(({ hash }) => hash === wanted);
    if (!isKnown) await rotateAppSecret(context, app.id, { overlapMs: 0, secret: seeds.appSecret });
    const settings = checkAppSettings(settingsOf(seeds), context);
    if (Object.keys(settings).length > 0) await updateApp(context, app.id, { settings });
  });
  return false;
}

function settingsOf({ config }: Seeds): AppSettings {
  const { jwtPublicKeyPem } = config;
  return jwtPublicKeyPem === undefined ? {} : { jwt_auth: { verification_key: jwtPublicKeyPem } };
}

function inTransaction(
  { services, database, appId }: Seeds,
  work: (context: OperationContext) => Promise<void>,
): Promise<void> {
  return inUnitOf(unitsOf(database))((em, notes) =>
    work({
      ...services,
      fundWallet: undefined,
      em,
      notes,
      app: { id: appId },
      nowMs: services.clock.now(),
      requestId: 'seeds',
      proof: {
        signatures: [],
        canonicalPayloads: () => [],
        expiryMs: undefined,
        userId: undefined,
        urlOf: () => assert.fail('a seed proposed an intent'),
        payloadsOf: () => assert.fail('a seed proposed an intent'),
      },
      // INVARIANT: creating seed data only writes rows; nothing is sent.
      afterCommit: () => assert.fail('a seed left something for after the commit'),
      afterRefusal: () => undefined,
      noteSignatures: () => undefined,
      inUnit: (work) => work(em, notes),
    }),
  );
}
