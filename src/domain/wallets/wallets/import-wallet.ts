import type { SqlEntityManager } from '@mikro-orm/sql';
import { normalizeAddress, normalizeWalletAddress } from '../../../engine/assets/addresses.ts';
import { HpkeError, type HpkeParameters } from '../../../engine/crypto/hpke.ts';
import { InvalidImportedKeyError } from '../../../engine/signing/signing-errors.ts';
import { ApiError, invalidField, StaleReadError } from '../../../errors.ts';
import type {
  InitWalletImportRequest,
  SubmitWalletImportRequest,
  WalletChainType,
  WalletInitImportResponse,
} from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { lockForUpdate, lockName } from '../../../storage/locks.ts';
import { walletImportBinding, walletKeyBinding } from '../../base/sealed-keys/sealed-keys.ts';
import { authorityOfNewWallet, type NewAuthority, sealedFor } from '../wallet-authorities/new-authority.ts';
import { checkWalletFields, insertWallet, type KeyOfWallet, resolveWalletOwner } from './create-wallet.ts';
import { WalletEntity, WalletImportEntity, type WalletRow } from './wallet.entity.ts';

/**
 * CHOICE: the lifetime of a started import. The specification gives none. An hour is enough for a person to find the
 * seed phrase.
 */
const LIFETIME_MS = 60 * 60 * 1000;

/**
 * Starts the import of an existing key: creates the key to which the caller encrypts it. A submission is matched by
 * address and chain type. Starting again replaces the previous import.
 *
 * @throws ApiError invalid_data for an address that does not match the chain type.
 */
export async function beginImport(
  context: OperationContext,
  request: InitWalletImportRequest,
): Promise<WalletInitImportResponse> {
  const chainType = request.chain_type;
  const address = normalizeWalletAddress(chainType, request.address);
  if (address === undefined) throw invalidField('/address', `expected an address of \`${chainType}\``);
  const id = context.ids.cuid2();
  const binding = walletImportBinding({ id, app_id: context.app.id, chain_type: chainType });
  const { sealed, publicKey } = await context.keyStore.createImportKey(binding);
  const ofAddress = { appId: context.app.id, chainType, address };
  // Serialize requests that begin the same import. Without this lock, many of them would collide repeatedly.
  await lockName(context.em, 'import', `${context.app.id} import ${chainType} ${address}`);
  await context.em.nativeDelete(WalletImportEntity, ofAddress);
  context.em.create(WalletImportEntity, {
    id,
    ...ofAddress,
    sealedSecret: Buffer.from(sealed.sealedSecret),
    wrappedDataKey: Buffer.from(sealed.wrappedDataKey),
    masterKeyId: sealed.masterKeyId,
    expiresAtMs: context.nowMs + LIFETIME_MS,
  });
  await context.em.flush();
  return {
    encryption_type: 'HPKE',
    encryption_public_key: Buffer.from(publicKey).toString('base64'),
  };
}

/** Deletes expired imports, and returns how many. */
export function dropExpiredImports(em: SqlEntityManager, nowMs: number): Promise<number> {
  return em.nativeDelete(WalletImportEntity, { expiresAtMs: { $lte: nowMs } });
}

type SealedImport = SubmitWalletImportRequest['wallet'];

const AT = '/wallet';

/**
 * Finishes an import: decrypts the key and creates the wallet if the key matches the declared address. A successful
 * submission ends the import.
 *
 * @throws ApiError invalid_data when no import was started, the ciphertext cannot be decrypted, or the key is invalid
 * or has another address; resource_conflict when the app has a wallet at the address, or the external id is taken.
 */
export async function finishImport(
  context: OperationContext,
  request: SubmitWalletImportRequest,
): Promise<WalletRow> {
  const { wallet } = request;
  const chainType = wallet.chain_type as WalletChainType;
  const address = normalizeAddress(wallet.address);
  const planned = await authorityOfNewWallet(context, request);
  const key = await importKey(context, wallet, { address, planned });
  if (key.address !== address) {
    throw invalidField(`${AT}/address`, `expected the address of the key, \`${key.address}\``);
  }
  await requireNewAddress(context, chainType, address);
  await checkWalletFields(context, request, chainType);
  const ownerId = await resolveWalletOwner(context, request, key.newOwnerId);
  if (key.authority !== undefined && key.ownerId !== ownerId) {
    // The request runs again and sees the change.
    throw new StaleReadError('the key quorum of the owner changed during the import');
  }
  return insertWallet(
    context,
    {
      chainType,
      ownerId,
      displayName: request.display_name,
      externalId: request.external_id,
      policyIds: request.policy_ids,
      additionalSigners: request.additional_signers,
      entity: request.entity,
      importedAtMs: context.nowMs,
    },
    key,
  );
}

async function importKey(
  context: OperationContext,
  wallet: SealedImport,
  { address, planned }: { address: string; planned: NewAuthority },
): Promise<KeyOfWallet> {
  const ofAddress = { appId: context.app.id, chainType: wallet.chain_type, address };
  const begun = await context.em.findOne(WalletImportEntity, ofAddress, lockForUpdate);
  if (begun === null || begun.expiresAtMs <= context.nowMs) {
    throw invalidField(AT, 'no import of this address was started, or it has expired');
  }
  await context.em.remove(begun).flush();
  const walletId = context.ids.cuid2();
  const owned = sealedFor(context.app.id, walletId, planned);
  const ofApp = { app_id: context.app.id, chain_type: wallet.chain_type };
  const submitted = {
    encapsulatedKey: base64(wallet.encapsulated_key),
    ciphertext: base64(wallet.ciphertext),
    parameters: hpkeParameters(wallet.hpke_config),
    ...(wallet.entropy_type === 'hd'
      ? ({ form: 'phrase', index: wallet.index } as const)
      : ({ form: 'private-key' } as const)),
  };
  try {
    const key = await context.keyStore.importWalletKey(
      begun,
      walletImportBinding({ ...ofApp, id: begun.id }),
      submitted,
      walletKeyBinding({ ...ofApp, id: walletId }),
      owned.authority,
    );
    return { ...key, ...owned, walletId };
  } catch (error) {
    const isRefusal = error instanceof HpkeError || error instanceof InvalidImportedKeyError;
    if (isRefusal) throw invalidField(`${AT}/ciphertext`, error.message);
    throw error;
  }
}

function hpkeParameters(config: SealedImport['hpke_config']): HpkeParameters {
  return {
    ...(config?.aead_algorithm === undefined ? {} : { aead: config.aead_algorithm }),
    ...(config?.info === undefined ? {} : { info: base64(config.info) }),
    ...(config?.aad === undefined ? {} : { aad: base64(config.aad) }),
  };
}

function base64(text: string): Uint8Array {
  return Buffer.from(text, 'base64');
}

async function requireNewAddress(
  context: OperationContext,
  chainType: string,
  address: string,
): Promise<void> {
  const held = await context.em.count(WalletEntity, { appId: context.app.id, address, chainType });
  if (held > 0) {
    throw new ApiError('resource_conflict', 'the app already has a wallet at this address', {
      headers: { 'x-should-retry': 'false' },
    });
  }
}
