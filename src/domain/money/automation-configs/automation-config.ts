import { assetNamed } from '../../../engine/assets/known-assets.ts';
import { chainNamed, chainOfCaip2, type KnownChain } from '../../../engine/assets/known-chains.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type {
  AutomationAssetFilter,
  AutomationAssetFilterInput,
  AutomationAssetSpec,
  AutomationAssetSpecInput,
  AutomationConfig,
  AutomationConfigInput,
  CreateWalletAutomationRequest,
  UpdateWalletAutomationRequest,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { lockName } from '../../../storage/locks.ts';
import {
  AttachmentEntity,
  AutomationEntity,
  type StoredAutomation,
} from '../../access/automations/automation.entity.ts';
import {
  addressOn,
  findAutomationForUpdate,
  isSameAsset,
  NATIVE,
} from '../../access/automations/automation.ts';
import { resolveOwner } from '../../access/key-quorums/resolve-owner.ts';
import { requireAuthorization } from '../../access/owners/require-authorization.ts';
import { type EarnVault, findNamedVault } from '../earn/earn-vault.ts';

/**
 * Returns the configuration in the form that is stored and shown. Every asset has its address and CAIP-2 id.
 *
 * @throws ApiError invalid_data naming the field.
 */
async function resolveConfig(
  context: Pick<OperationContext, 'app' | 'em'>,
  { trigger, action }: AutomationConfigInput,
): Promise<AutomationConfig> {
  const assets = resolveFilter(trigger.assets, '/config/trigger/assets');
  if (action.type === 'earn_deposit') {
    const vault = await findNamedVault(context, action.vault_id, '/config/action/vault_id');
    requireAssetOf(vault, assets);
    return { trigger: { type: 'deposit', assets }, action: { type: 'earn_deposit', vault_id: vault.id } };
  }
  const pointer = '/config/action/destination_chain_asset';
  const destination = resolveAsset(action.destination_chain_asset, pointer);
  return {
    trigger: { type: 'deposit', assets },
    action: { type: 'swap', destination_chain_asset: destination },
  };
}

/**
 * Requires that the filter contains only the asset of the vault. A vault accepts one asset, so deposits of other assets
 * could only fail.
 *
 * @throws ApiError invalid_data
 */
function requireAssetOf({ assetAddress, caip2 }: EarnVault, filter: AutomationAssetFilter): void {
  const accepted = { asset_address: assetAddress, caip2 };
  const isExact = filter.mode === 'include' && filter.values.every((each) => isSameAsset(each, accepted));
  if (isExact) return;
  throw invalidField(
    '/config/trigger/assets',
    `expected \`include\` with the asset of the vault, \`${assetAddress}\` on \`${caip2}\``,
  );
}

function resolveFilter(filter: AutomationAssetFilterInput, pointer: string): AutomationAssetFilter {
  if (filter.mode === 'all') return { mode: 'all' };
  const { mode } = filter;
  return {
    mode,
    values: filter.values.map((spec, index) => resolveAsset(spec, `${pointer}/values/${index}`)),
  };
}

function resolveAsset(spec: AutomationAssetSpecInput, pointer: string): AutomationAssetSpec {
  const chain = resolveChain(spec, pointer);
  const { asset, asset_address: address } = spec;
  if ((asset === undefined) === (address === undefined)) {
    throw invalidField(pointer, 'expected either `asset` or `asset_address`');
  }
  const assetAddress =
    asset === undefined
      ? addressOn(chain, address!, `${pointer}/asset_address`)
      : addressOfName(chain, asset, `${pointer}/asset`);
  return { asset_address: assetAddress, caip2: chain.caip2 };
}

function resolveChain({ chain: name, caip2 }: AutomationAssetSpecInput, pointer: string): KnownChain {
  if ((name === undefined) === (caip2 === undefined)) {
    throw invalidField(pointer, 'expected either `chain` or `caip2`');
  }
  const chain = name === undefined ? chainOfCaip2(caip2!) : chainNamed(name);
  if (chain !== undefined) return chain;
  const [field, given] = name === undefined ? ['caip2', caip2] : ['chain', name];
  throw invalidField(`${pointer}/${field}`, `expected a known chain, got \`${given}\``);
}

function addressOfName(chain: KnownChain, asset: string, pointer: string): string {
  const known = assetNamed(chain, asset);
  if (known === undefined) {
    throw invalidField(pointer, `expected the name of an asset on \`${chain.name}\`, got \`${asset}\``);
  }
  return known.tokenAddress ?? NATIVE;
}

/** CHOICE: the maximum number of automations of an app. */
const MAX_AUTOMATIONS = 100;

/**
 * Creates an enabled automation. It has no effect until it is attached to a wallet.
 *
 * @throws ApiError invalid_data for an owner, chain, asset or vault that does not exist, and for a trigger with an
 * asset other than the vault's; invalid_request when the app already has the maximum number of automations.
 */
export async function createAutomation(
  context: OperationContext,
  input: CreateWalletAutomationRequest,
): Promise<StoredAutomation> {
  await requireBelowLimit(context);
  const automation = context.em.create(AutomationEntity, {
    id: context.ids.cuid2(),
    appId: context.app.id,
    name: textOf(input.name) ?? null,
    ownerId: (await resolveOwner(context, input)) ?? null,
    ...{ isEnabled: 1, isManaged: 0 },
    config: await resolveConfig(context, input.config),
    createdAtMs: context.nowMs,
    updatedAtMs: context.nowMs,
  });
  await context.em.flush();
  return automation;
}

/**
 * Locks the app's automations against concurrent creations, and refuses an automation beyond the limit. The automations
 * of deposit addresses (`isManaged`) do not count.
 *
 * @throws ApiError invalid_request
 */
async function requireBelowLimit(context: OperationContext): Promise<void> {
  await lockName(context.em, 'automations', `automations:${context.app.id}`);
  const count = await context.em.count(AutomationEntity, { appId: context.app.id, isManaged: 0 });
  if (count >= MAX_AUTOMATIONS) {
    throw new ApiError(
      'invalid_request',
      `expected at most ${MAX_AUTOMATIONS} automations; delete one first`,
    );
  }
}

/**
 * Changes an automation for all later deposits. Requires the current owner's authorization.
 *
 * @throws ApiError not_found, invalid_data, and what `requireAuthorization` throws.
 */
export async function updateAutomation(
  context: OperationContext,
  id: string,
  change: UpdateWalletAutomationRequest,
): Promise<StoredAutomation> {
  const automation = await findAutomationForUpdate(context, id);
  await requireAuthorization(context, { ownerId: automation.ownerId });
  if (Object.values(change).every((value) => value === undefined)) {
    throw invalidField('', 'expected at least one field');
  }
  const ownerId = await resolveOwner(context, change);
  const name = textOf(change.name);
  if (ownerId !== undefined) automation.ownerId = ownerId;
  if (name !== undefined) automation.name = name;
  if (change.enabled !== undefined) automation.isEnabled = change.enabled ? 1 : 0;
  if (change.config !== undefined) automation.config = await resolveConfig(context, change.config);
  automation.updatedAtMs = context.nowMs;
  await context.em.flush();
  return automation;
}

/**
 * Deletes an automation and detaches it from every wallet. Its executions stay. Requires the owner's authorization.
 *
 * @throws ApiError not_found, and what `requireAuthorization` throws.
 */
export async function deleteAutomation(context: OperationContext, id: string): Promise<void> {
  const automation = await findAutomationForUpdate(context, id);
  await requireAuthorization(context, { ownerId: automation.ownerId });
  await context.em.nativeDelete(AttachmentEntity, { automationId: id });
  await context.em.remove(automation).flush();
}

function textOf(name: string | null | undefined): string | null | undefined {
  if (typeof name === 'string' && !name.isWellFormed()) {
    throw invalidField('/name', 'must be text without halves of surrogate pairs');
  }
  return name;
}
