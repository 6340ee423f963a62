import assert from 'node:assert/strict';
import { assetsOf, type KnownAsset } from '../../../engine/assets/known-assets.ts';
import type { KnownChain } from '../../../engine/assets/known-chains.ts';
import { ApiError, invalidField, invalidQuery } from '../../../errors.ts';
import type {
  AdditionalSignerInput,
  CreateCryptoDepositAccountRequest,
  CryptoDepositAccountChain,
  CryptoDepositAccountConfigResponse,
  CryptoDepositAccountConfigSearchResponse,
  CryptoDepositAccountSourceCurrency,
  CryptoDepositAddressRoute,
  CryptoDepositAddressStrategy,
} from '../../../generated/schemas.ts';
import {
  type OperationContext,
  type PlanContext,
  type Planned,
  unwrapPlan,
} from '../../../ports/operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { type DepositConfig, readDepositConfigs } from '../../access/apps/deposit-configs.ts';
import { findApp } from '../../access/apps/find-app.ts';
import {
  AttachmentEntity,
  AutomationEntity,
  type StoredAttachment,
} from '../../access/automations/automation.entity.ts';
import { MAX_ATTACHED } from '../../access/automations/automation.ts';
import { requireAuthorization } from '../../access/owners/require-authorization.ts';
import { lockWallet } from '../../wallets/wallet-automations/wallet-automation.ts';
import { createWalletKey, insertWallet, type NewWalletRow } from '../../wallets/wallets/create-wallet.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import { signersOf, type WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import { changeAuthority } from '../../wallets/wallets/wallet-keys.ts';
import { depositChains, ZERO_ADDRESS } from './deposit-chains.ts';
import { overlaps, type ResolvedRoute, resolveRoute, routeKey } from './deposit-routes.ts';

const MAX_PAGE = 100;

/**
 * Lists one page of the deposit addresses that lead to a wallet, newest first.
 *
 * @throws ApiError not_found; invalid_data for a cursor that is not an address of the wallet.
 */
export async function listCryptoDepositAccounts(
  context: Pick<OperationContext, 'app' | 'em'>,
  walletId: string,
  { cursor, limit = MAX_PAGE }: { cursor?: string | undefined; limit?: number | undefined },
): Promise<{ accounts: CryptoDepositAddressRoute[]; nextCursor: string | null }> {
  const { em } = context;
  const { id: destinationWalletId } = await findWallet(context, walletId);
  const after =
    cursor === undefined
      ? undefined
      : await em.findOne(AttachmentEntity, { id: cursor, destinationWalletId });
  if (after === null) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  const { page, nextCursor } = await findPage(
    em,
    AttachmentEntity,
    { destinationWalletId },
    { after, limit },
  );
  return { accounts: page.map(accountView), nextCursor };
}

/** Converts a deposit address and its route to wire form. `wallet_id` is the wallet that has the address. */
function accountView({ walletId, route }: StoredAttachment): CryptoDepositAddressRoute {
  assert(route !== null, 'expected the attachment of a deposit address');
  return { wallet_id: walletId, ...route };
}

interface NewCryptoDepositAccount {
  readonly walletId: string;
  readonly body: CreateCryptoDepositAccountRequest;
  /** The result of `planCryptoDepositAccount`. */
  readonly planned: Planned<readonly ResolvedRoute[]>;
}

/** The chain type of the wallets at deposit addresses. */
const SOURCE_CHAIN_TYPE = 'ethereum' as const;

/**
 * Resolves the routes of a request.
 *
 * @throws ApiError not_found; invalid_data for an unknown deposit configuration of the app; what `resolveRoute` throws.
 */
export async function planCryptoDepositAccount(
  context: PlanContext,
  walletId: string,
  body: CreateCryptoDepositAccountRequest,
): Promise<ResolvedRoute[]> {
  const wallet = await findWallet(context, walletId);
  const isOwn = usesOwnAddress(wallet, body.deposit_address_strategy);
  if (body.type === 'inline_route')
    return [await resolveRoute(context, body, { wallet, isOwn, pointer: '' })];
  const { routes } = await findConfig(context, body.deposit_config_id);
  const pointer = '/deposit_config_id';
  return Promise.all(routes.map((route) => resolveRoute(context, route, { wallet, isOwn, pointer })));
}

async function findConfig({ em, app }: PlanContext, id: string): Promise<DepositConfig> {
  const { settings } = await findApp(em, app.id);
  const config = readDepositConfigs(settings).find((each) => each.id === id);
  if (config !== undefined) return config;
  throw invalidField('/deposit_config_id', `expected the id of a deposit configuration, got \`${id}\``);
}

/**
 * Opens a deposit address for each route. Deposits to it are converted and sent to the wallet. Behind an address is a
 * managed automation, attached to a new wallet of the same owner or to the wallet itself. A route that is already
 * open keeps its address.
 *
 * CHOICE: the owner and additional signers may open addresses on new wallets. On the wallet itself, an automation
 * acts under the owner's policies, so only the owner may attach one.
 *
 * @throws ApiError not_found; not_supported; what `requireAuthorization` and `planCryptoDepositAccount` throw;
 * invalid_state for an imported or exported wallet as its own address; resource_conflict for a route that overlaps
 * another route of that address; invalid_request for more routes than a wallet may have.
 */
export async function createCryptoDepositAccount(
  context: OperationContext,
  { walletId, body, planned }: NewCryptoDepositAccount,
): Promise<CryptoDepositAddressRoute[]> {
  const wallet = await findWallet(context, walletId);
  const { deposit_address_strategy: strategy } = body;
  const isOwn = usesOwnAddress(wallet, strategy);
  const signers = isOwn ? [] : signersOf(wallet);
  const authorization = await requireAuthorization(context, { ownerId: wallet.owner_id, signers });
  if (isOwn) requireAutomatable(wallet);
  else if (strategy === 'require_destination') throw noOwnAddress(wallet);
  const routes = unwrapPlan(planned);
  await lockWallet(context, wallet);
  const accounts: CryptoDepositAddressRoute[] = [];
  for (const route of routes) accounts.push(accountView(await openRoute(context, { wallet, route, isOwn })));
  if (isOwn) await changeAuthority(context, { before: wallet, after: wallet, authorization });
  return accounts;
}

/**
 * Returns whether deposits go to the wallet itself. A wallet on another chain type or with a custodian cannot receive
 * them. With `prefer_destination`, neither does a wallet whose key was imported or exported.
 */
function usesOwnAddress(wallet: WalletRow, strategy: CryptoDepositAddressStrategy = 'dedicated'): boolean {
  const canReceive = wallet.chain_type === SOURCE_CHAIN_TYPE && wallet.custody_provider === null;
  if (strategy === 'dedicated' || !canReceive) return false;
  return strategy === 'require_destination' || takenOutBy(wallet) === undefined;
}

function takenOutBy({ imported_at_ms, exported_at_ms }: WalletRow): string | undefined {
  if (imported_at_ms !== null) return 'imported';
  return exported_at_ms === null ? undefined : 'exported';
}

function requireAutomatable(wallet: WalletRow): void {
  const what = takenOutBy(wallet);
  if (what === undefined) return;
  throw new ApiError('invalid_state', `a wallet that was ${what} cannot be its own deposit address`);
}

function noOwnAddress({ chain_type: chainType, custody_provider: custodian }: WalletRow): ApiError {
  const what = custodian === null ? `a \`${chainType}\` wallet` : 'a wallet of a custodian';
  return new ApiError(
    'not_supported',
    `/deposit_address_strategy: ${what} cannot be its own deposit address`,
  );
}

interface Opening {
  readonly wallet: WalletRow;
  readonly route: ResolvedRoute;
  readonly isOwn: boolean;
}

/**
 * Opens a route unless it is already open.
 *
 * The caller has locked the wallet, so of concurrent requests for one route, one opens it and the others find it.
 *
 * @throws ApiError invalid_request for too many routes; what `requireNoOverlap` and `openAddress` throw.
 */
async function openRoute(
  context: OperationContext,
  { wallet, route, isOwn }: Opening,
): Promise<StoredAttachment> {
  const { em, nowMs, ids } = context;
  const key = routeKey(route, isOwn);
  const open = await em.find(AttachmentEntity, { destinationWalletId: wallet.id });
  const known = open.find(({ routeKey: each }) => each === key);
  if (known !== undefined) return known;
  if (open.length >= MAX_ATTACHED) {
    throw new ApiError(
      'invalid_request',
      `expected at most ${MAX_ATTACHED} crypto deposit accounts of a wallet`,
    );
  }
  if (isOwn) await requireNoOverlap(context, wallet, { open, route });
  const address = isOwn ? wallet : await openAddress(context, wallet);
  const at = { createdAtMs: nowMs, updatedAtMs: nowMs };
  const automation = em.create(AutomationEntity, {
    ...{
      id: ids.cuid2(),
      appId: context.app.id,
      name: null,
      ownerId: null,
      isEnabled: 1,
      isManaged: 1,
      ...at,
    },
    config: {
      trigger: { type: 'deposit', assets: route.filter },
      action: { type: 'swap', destination_chain_asset: route.destination },
    },
  });
  const attachment = em.create(AttachmentEntity, {
    ...{ id: ids.cuid2(), walletId: address.id, automationId: automation.id, ...at },
    params: isOwn ? null : { destination_address: wallet.address },
    ...{ agreedById: wallet.owner_id, destinationWalletId: wallet.id, routeKey: key },
    route: { deposit_address: address.address, ...route.shown },
  });
  await em.flush();
  return attachment;
}

/**
 * Refuses routes that overlap, because a deposit can be converted only once.
 *
 * @throws ApiError resource_conflict
 */
async function requireNoOverlap(
  { em }: OperationContext,
  { id }: WalletRow,
  { open, route }: { readonly open: readonly StoredAttachment[]; readonly route: ResolvedRoute },
): Promise<void> {
  const own = open.filter(({ walletId }) => walletId === id);
  const automations = await em.find(AutomationEntity, { id: { $in: own.map((each) => each.automationId) } });
  const isTaken = automations.some(({ config }) => overlaps(config.trigger.assets, route.filter));
  if (!isTaken) return;
  throw new ApiError(
    'resource_conflict',
    'another route converts some of these assets at the address of the wallet',
    {
      headers: { 'x-should-retry': 'false' },
    },
  );
}

/**
 * Creates the wallet of a deposit address, with the owner, policies, signers and entity of the destination wallet.
 *
 * CHOICE: later changes of these are not copied. The limit on wallets of an organization does not apply to deposit
 * addresses.
 *
 * @throws ApiError not_supported for policies of another chain type.
 */
async function openAddress(context: OperationContext, wallet: WalletRow): Promise<WalletRow> {
  const signers = JSON.parse(wallet.additional_signers) as AdditionalSignerInput;
  const hasPolicies =
    wallet.policy_id !== null || signers.some(({ override_policy_ids: ids = [] }) => ids.length > 0);
  if (hasPolicies && wallet.chain_type !== SOURCE_CHAIN_TYPE) {
    throw new ApiError(
      'not_supported',
      `the policies of a \`${wallet.chain_type}\` wallet cannot protect a deposit address on EVM chains`,
    );
  }
  const made: NewWalletRow = {
    ...{ chainType: SOURCE_CHAIN_TYPE, ownerId: wallet.owner_id, additionalSigners: signers },
    ...(wallet.policy_id === null ? {} : { policyIds: [wallet.policy_id] }),
    ...(wallet.entity_id === null || wallet.entity_type === null
      ? {}
      : { entity: { id: wallet.entity_id, type: wallet.entity_type } }),
  };
  return insertWallet(context, made, await createWalletKey(context, SOURCE_CHAIN_TYPE));
}

const chainTitles: Readonly<Record<string, string>> = {
  arbitrum: 'Arbitrum One',
  optimism: 'OP Mainnet',
  bsc: 'BNB Smart Chain',
  zksync_era: 'ZKsync Era',
  worldchain: 'World Chain',
  megaeth: 'MegaETH',
  hyperevm: 'HyperEVM',
  optimism_sepolia: 'OP Sepolia',
  bsc_testnet: 'BNB Smart Chain Testnet',
};

const assetTitles: Readonly<Record<string, string>> = {
  eth: 'Ether',
  avax: 'Avalanche',
  pol: 'Polygon Ecosystem Token',
  bnb: 'BNB',
  hype: 'Hyperliquid',
  usdc: 'USD Coin',
  'usdc.e': 'Bridged USD Coin',
  usdt: 'Tether USD',
  eurc: 'Euro Coin',
};

/** Returns the display name of a chain: its own name, or the words of its name in the API. */
function chainTitle(name: string): string {
  const words = name.split('_').map((word) => word.charAt(0).toUpperCase() + word.slice(1));
  return chainTitles[name] ?? words.join(' ');
}

function assetTitle(asset: string): string {
  return assetTitles[asset] ?? asset.toUpperCase();
}

/**
 * Returns an icon as a data URL: a disk with the first letter, in a color derived from the name.
 *
 * CHOICE: icons are data URLs, so that a page that shows them requests no images from another host, which would learn
 * who visits the page.
 */
function iconOf(name: string): string {
  const hue = [...name].reduce((sum, letter) => (sum * 31 + letter.charCodeAt(0)) % 360, 0);
  const svg =
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 32 32">' +
    `<circle cx="16" cy="16" r="16" fill="hsl(${hue},60%,45%)"/>` +
    '<text x="16" y="22" font-family="sans-serif" font-size="16" text-anchor="middle" fill="#fff">' +
    `${name.charAt(0)}</text></svg>`;
  return `data:image/svg+xml,${encodeURIComponent(svg)}`;
}

/** Returns the chains and currencies that deposit addresses accept, in wire form. */
export function depositConfigView(
  context: Pick<PlanContext, 'chains' | 'exchange' | 'swapRoutes'>,
): CryptoDepositAccountConfigResponse {
  const chains = depositChains(context);
  const bySymbol = Map.groupBy(chains.flatMap(assetsOf), ({ asset }) => asset);
  return {
    chains: Object.fromEntries(chains.map((chain) => [chain.name, chainView(chain)])),
    currencies: [...bySymbol].map(([asset, places]) => currencyView(asset, places)),
  };
}

/**
 * Returns the currencies whose name or symbol contains a search text, or whose token has this address, and their chains
 * by CAIP-2 id.
 *
 * CHOICE: only currencies of the configuration are searched, so all results are verified.
 */
export function depositConfigSearchView(
  context: Pick<PlanContext, 'chains' | 'exchange' | 'swapRoutes'>,
  text: string,
): CryptoDepositAccountConfigSearchResponse {
  const { chains, currencies } = depositConfigView(context);
  const wanted = text.trim().toLowerCase();
  const found = currencies.filter(
    ({ name, symbol, chains: places }) =>
      name.toLowerCase().includes(wanted) ||
      symbol.toLowerCase().includes(wanted) ||
      places.some(({ address }) => address.toLowerCase() === wanted),
  );
  const ids = new Set(found.flatMap(({ chains: places }) => places.map(({ caip2 }) => caip2)));
  const shown = Object.values(chains).filter(({ caip2 }) => ids.has(caip2));
  return {
    chains: Object.fromEntries(shown.map((chain) => [chain.caip2, chain])),
    currencies: found.map((currency) => ({ ...currency, verified: true })),
  };
}

function chainView({ name, caip2 }: KnownChain): CryptoDepositAccountChain {
  const title = chainTitle(name);
  return {
    caip2,
    chain_id: Number(caip2.slice('eip155:'.length)),
    display_name: title,
    icon_url: iconOf(title),
    vm_type: 'evm',
  };
}

function currencyView(asset: string, places: readonly KnownAsset[]): CryptoDepositAccountSourceCurrency {
  return {
    name: assetTitle(asset),
    symbol: asset.toUpperCase(),
    logo_uri: iconOf(asset.toUpperCase()),
    chains: places.map(({ chain, tokenAddress, decimals }) => ({
      ...{ caip2: chain.caip2, address: tokenAddress ?? ZERO_ADDRESS, decimals },
    })),
  };
}
