import type { SqlEntityManager } from '@mikro-orm/sql';
import { normalizeWalletAddress } from '../../../assets/normalize-address.ts';
import { invalidField } from '../../../errors.ts';
import type { InitWalletImportRequest, WalletInitImportResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import { lockName } from '../../../storage/locks.ts';
import { walletImportBinding } from '../../base/sealed-keys/seal-bindings.ts';
import { WalletImportEntity } from './wallet-import.entity.ts';

/** CHOICE: no lifetime is published; an hour is enough for a person to find the phrase. */
const LIFETIME_MS = 60 * 60 * 1000;

/**
 * Starts the import of an existing key: creates the key to which the caller encrypts it. A submission is matched by
 * address and chain type; starting again replaces the previous import.
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
  const { sealed, publicKey } = await context.vault.createImportKey(binding);
  const ofAddress = { appId: context.app.id, chainType, address };
  // Requests that begin the same import run one after the other: many of them would collide again and again.
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

/** Deletes expired imports; returns how many. */
export function dropExpiredImports(em: SqlEntityManager, nowMs: number): Promise<number> {
  return em.nativeDelete(WalletImportEntity, { expiresAtMs: { $lte: nowMs } });
}
