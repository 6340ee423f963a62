import type { SqlEntityManager } from '@mikro-orm/sql';
import { readChainAddress } from '../../../engine/assets/addresses.ts';
import { assetAtAddress } from '../../../engine/assets/known-assets.ts';
import { chainOfCaip2, type KnownChain } from '../../../engine/assets/known-chains.ts';
import { invalidField, invalidQuery, notFound } from '../../../errors.ts';
import type {
  AutomationAssetFilter,
  AutomationAssetSpec,
  WalletAutomationResponse,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { findPage } from '../../../storage/find-page.ts';
import { lockForUpdate } from '../../../storage/locks.ts';
import { AttachmentEntity, AutomationEntity, type StoredAutomation } from './automation.entity.ts';

/** The word for the native asset where the API expects a token address. */
export const NATIVE = 'native';

/**
 * Converts a token address to the notation of the chain type. Returns `native` unchanged.
 *
 * @throws ApiError invalid_data naming the field.
 */
export function addressOn(chain: KnownChain, address: string, pointer: string): string {
  const read = address === NATIVE ? chain.native && NATIVE : readChainAddress(chain.chainType, address);
  if (read !== undefined) return read;
  throw invalidField(
    pointer,
    `expected the address of a token on \`${chain.name}\`${chain.native ? ' or `native`' : ''}, got \`${address}\``,
  );
}

/**
 * Returns whether a deposit of the asset triggers an automation with this filter.
 *
 * CHOICE: `all` and `exclude` cover the native asset and the tokens that have a name in the API. Anyone can deploy a
 * token whose transfer burns gas, and send it to a wallet. Only `include` covers tokens without a name.
 */
export function matchesFilter(filter: AutomationAssetFilter, asset: AutomationAssetSpec): boolean {
  if (filter.mode === 'all') return isNamed(asset);
  const isListed = filter.values.some((each) => isSameAsset(each, asset));
  return filter.mode === 'include' ? isListed : !isListed && isNamed(asset);
}

function isNamed({ caip2, asset_address: address }: AutomationAssetSpec): boolean {
  const chain = chainOfCaip2(caip2);
  return address === NATIVE || (chain !== undefined && assetAtAddress(chain, address) !== undefined);
}

/**
 * Returns whether two assets are the same. EVM addresses are stored in checksum case, so their text can be compared.
 */
export function isSameAsset(left: AutomationAssetSpec, right: AutomationAssetSpec): boolean {
  return left.caip2 === right.caip2 && left.asset_address === right.asset_address;
}

/**
 * Detaches all automations from a wallet. Runs in the transaction that exports or archives the wallet or changes its
 * owner. Archiving and a new owner also end the deposit addresses that lead to the wallet.
 *
 * CHOICE: consent ends with these changes, because the previous owner gave it for a wallet that only this server
 * could use. An exported wallet can still receive the conversions of other addresses.
 */
export async function endAttachments(
  em: SqlEntityManager,
  walletId: string,
  { isExport = false }: { readonly isExport?: boolean } = {},
): Promise<void> {
  const ended = await em.find(AttachmentEntity, {
    $or: [{ walletId }, ...(isExport ? [] : [{ destinationWalletId: walletId }])],
  });
  if (ended.length === 0) return;
  await em.nativeDelete(AttachmentEntity, { id: { $in: ended.map(({ id }) => id) } });
  await em.nativeDelete(AutomationEntity, {
    id: { $in: ended.map(({ automationId }) => automationId) },
    isManaged: 1,
  });
}

type AutomationContext = Pick<OperationContext, 'app' | 'em'>;

const MAX_PAGE = 100;

/**
 * Finds an automation that the app created. The automations of deposit addresses (`isManaged`) are not found.
 *
 * @throws ApiError not_found
 */
export async function findAutomation({ app, em }: AutomationContext, id: string): Promise<StoredAutomation> {
  const automation = await em.findOne(AutomationEntity, { id, appId: app.id, isManaged: 0 });
  if (automation === null) throw notFound('Automation');
  return automation;
}

/**
 * Finds an automation that the app created and that the caller is about to change, and locks it until the transaction
 * ends. The automations of deposit addresses (`isManaged`) are not found.
 *
 * @throws ApiError not_found
 */
export async function findAutomationForUpdate(
  { app, em }: AutomationContext,
  id: string,
): Promise<StoredAutomation> {
  const automation = await em.findOne(AutomationEntity, { id, appId: app.id, isManaged: 0 }, lockForUpdate);
  if (automation === null) throw notFound('Automation');
  return automation;
}

/**
 * Lists one page of the automations that the app created, newest first, without those of deposit addresses
 * (`isManaged`).
 *
 * CHOICE: an unknown `wallet_id` gives an empty list, as unknown values of other filters do.
 *
 * @throws ApiError invalid_data for a cursor that is not an automation of the app.
 */
export async function listAutomations(
  { app, em }: AutomationContext,
  options: { cursor?: string | undefined; limit?: number | undefined; walletId?: string | undefined },
): Promise<{ automations: StoredAutomation[]; nextCursor: string | null }> {
  const { cursor, walletId, limit = MAX_PAGE } = options;
  const after =
    cursor === undefined
      ? undefined
      : await em.findOne(AutomationEntity, { id: cursor, appId: app.id, isManaged: 0 });
  if (after === null) throw invalidQuery('cursor', 'expected the `next_cursor` of a previous page');
  const attached =
    walletId === undefined
      ? undefined
      : await em.find(AttachmentEntity, { walletId, destinationWalletId: null }, { limit: MAX_ATTACHED });
  const { page, nextCursor } = await findPage(
    em,
    AutomationEntity,
    {
      appId: app.id,
      isManaged: 0,
      ...(attached && { id: { $in: attached.map(({ automationId }) => automationId) } }),
    },
    { after, limit },
  );
  return { automations: page, nextCursor };
}

/**
 * CHOICE: the maximum number of automations attached to one wallet at a time, and of routes that lead to one wallet.
 */
export const MAX_ATTACHED = 20;

/** Converts an automation to wire form. */
export function automationView(automation: StoredAutomation): WalletAutomationResponse {
  return {
    id: automation.id,
    app_id: automation.appId,
    name: automation.name,
    owner_id: automation.ownerId,
    status: automation.isEnabled === 1 ? 'enabled' : 'disabled',
    config: automation.config,
    created_at: new Date(automation.createdAtMs).toISOString(),
    updated_at: new Date(automation.updatedAtMs).toISOString(),
  };
}
