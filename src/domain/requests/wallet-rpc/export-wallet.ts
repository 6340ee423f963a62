import { exportAction } from '../../../engine/actions/decode-action.ts';
import { HpkeError } from '../../../engine/crypto/hpke.ts';
import { p256PublicKeyPoint } from '../../../engine/crypto/p256.ts';
import { ApiError, invalidField } from '../../../errors.ts';
import type { ExportWalletRequest, WalletExportResponse } from '../../../generated/schemas.ts';
import type { HpkeMessage } from '../../../ports/key-store.ts';
import type { OperationContext } from '../../../ports/operation-context.ts';
import { endAttachments } from '../../access/automations/automation.ts';
import { KeyQuorumMemberEntity } from '../../access/key-quorums/key-quorum.entity.ts';
import { readPublicKey } from '../../access/key-quorums/resolve-owner.ts';
import type { Authorization } from '../../access/owners/require-authorization.ts';
import { recordEvent } from '../../base/events/events.ts';
import { walletKeyBinding } from '../../base/sealed-keys/sealed-keys.ts';
import { authorizeUse } from '../../wallets/wallet-uses/use-wallet.ts';
import { findWallet } from '../../wallets/wallets/find-wallet.ts';
import { WalletEntity, type WalletRow } from '../../wallets/wallets/wallet.entity.ts';
import { askUnderRecordedOwner, findWalletKey, loadKeyUseClaim } from '../../wallets/wallets/wallet-keys.ts';

/**
 * Exports a wallet's private key or its seed phrase to its owner, encrypted to the recipient's key (HPKE). The policy
 * methods `exportPrivateKey` and `exportSeedPhrase` apply. Additional signers cannot export.
 *
 * @param at JSON pointer to the fields of the export in the body: the root, or `/params` of an RPC request.
 * @throws ApiError not_found; invalid_data for an invalid recipient key; invalid_request for the phrase of a wallet
 * without one; not_supported for a custodial wallet; policy_violation; what `requireAuthorization` throws.
 */
export async function exportWallet(
  context: OperationContext,
  walletId: string,
  request: ExportWalletRequest,
  at = '',
): Promise<WalletExportResponse> {
  const wallet = await findWallet(context, walletId);
  if (wallet.custody_provider !== null)
    throw new ApiError('not_supported', 'a custodial wallet cannot be exported');
  const isPhrase = request.export_seed_phrase === true;
  const use = await authorizeUse(context, wallet, {
    operation: 'exportWallet',
    request,
    prepare: async () => ({ action: exportAction(isPhrase) }),
    allowsSigners: false,
  });
  const pointer = `${at}/recipient_public_key`;
  const recipient = p256PublicKeyPoint(readPublicKey(request.recipient_public_key, pointer));
  const sealed = await sealedExport(context, wallet, use.authorization, { isPhrase, recipient, pointer });
  if (sealed === undefined) throw hasNoPhrase(at === '' ? '/export_seed_phrase' : '/method');
  await use.recordOrDeny();
  await markExported(context, wallet, request, isPhrase);
  return {
    encryption_type: 'HPKE',
    ciphertext: Buffer.from(sealed.ciphertext).toString('base64'),
    encapsulated_key: Buffer.from(sealed.encapsulatedKey).toString('base64'),
  };
}

async function sealedExport(
  context: OperationContext,
  wallet: WalletRow,
  authorization: Authorization,
  { isPhrase, recipient, pointer }: { isPhrase: boolean; recipient: Uint8Array; pointer: string },
): Promise<HpkeMessage | undefined> {
  const what = { form: isPhrase ? 'phrase' : 'private-key', recipient } as const;
  const { authority, ...sealed } = await findWalletKey(context, wallet);
  const claim = await loadKeyUseClaim(context, wallet, authority, authorization);
  try {
    return await askUnderRecordedOwner(context, claim, (shown) =>
      context.keyStore.exportWalletKey(sealed, walletKeyBinding(wallet), what, shown),
    );
  } catch (error) {
    if (error instanceof HpkeError) throw invalidField(pointer, error.message);
    throw error;
  }
}

function hasNoPhrase(pointer: string): ApiError {
  const message = 'the wallet was not made from a seed phrase';
  return new ApiError('invalid_request', `${pointer}: ${message}`, {
    data: { issues: [{ in: 'body', pointer, message }] },
  });
}

async function markExported(
  context: OperationContext,
  wallet: WalletRow,
  { export_type: exportSource }: ExportWalletRequest,
  isPhrase: boolean,
): Promise<void> {
  await context.em.nativeUpdate(WalletEntity, { id: wallet.id }, { exportedAtMs: context.nowMs });
  await endAttachments(context.em, wallet.id, { isExport: true });
  const userId = await soleUserOf(context, wallet.owner_id);
  await recordEvent(context, {
    appId: context.app.id,
    type: isPhrase ? 'wallet.seed_phrase_export' : 'wallet.private_key_export',
    payload: {
      ...(userId === undefined ? {} : { user_id: userId }),
      wallet_id: wallet.id,
      wallet_address: wallet.address,
      ...(exportSource === undefined ? {} : { export_source: exportSource }),
    },
  });
}

/** Returns the user who is the owner's only member; undefined for any other owner. */
async function soleUserOf(context: OperationContext, ownerId: string | null): Promise<string | undefined> {
  if (ownerId === null) return undefined;
  const members = await context.em.find(KeyQuorumMemberEntity, { keyQuorumId: ownerId }, { limit: 2 });
  const [first] = members;
  return members.length === 1 && first?.kind === 'user' ? first.member : undefined;
}
