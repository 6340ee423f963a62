import { ApiError } from '../../../errors.ts';
import type { TransferActionResponse } from '../../../generated/schemas.ts';
import type { OperationContext } from '../../../operation-context.ts';
import type { ChainType } from '../../../signing/chains.ts';
import type { TransferPlan } from '../../money/wallet-actions/plan-transfer.ts';
import {
  prepareTransfer,
  readTransferBody,
  transferFromWallet,
} from '../../money/wallet-actions/transfer-from-wallet.ts';
import { walletActionView } from '../../money/wallet-actions/wallet-action-view.ts';
import { signersOf } from '../../wallets/wallet-uses/authorize-use.ts';
import { findWalletForUpdate } from '../../wallets/wallets/find-wallet.ts';
import { checkWalletChange, updateWallet } from '../../wallets/wallets/update-wallet.ts';
import type { WalletRow } from '../../wallets/wallets/wallet-row.ts';
import { walletView } from '../../wallets/wallets/wallet-view.ts';
import { decodeUse } from '../policy-analysis/decode-use.ts';
import { prepareRpc } from '../wallet-rpc/prepare-rpc.ts';
import type { RpcPlan } from '../wallet-rpc/rpc-plan.ts';
import { signWithWallet } from '../wallet-rpc/sign-with-wallet.ts';
import type { PreparedProposal, Proposal, Subject } from './proposal.ts';

async function hold(
  context: OperationContext,
  { wallet_id: walletId }: { wallet_id: string },
): Promise<Subject<WalletRow>> {
  const row = await findWalletForUpdate(context, walletId);
  return { id: row.id, ownerId: row.owner_id, row };
}

// CHOICE: an external id in the path is replaced by the wallet id, so that signatures never cover an alias.
const ownPath = ({ id }: Subject<WalletRow>): { wallet_id: string } => ({ wallet_id: id });

/** Methods that only the owner may authorize. */
const ownersMethods: ReadonlySet<string> = new Set(['exportPrivateKey', 'exportSeedPhrase']);

export const updateWalletProposal: Proposal<'updateWallet', WalletRow> = {
  intentType: 'WALLET',
  hold,
  pathOf: ownPath,
  check: (context, { row }, { body }) => checkWalletChange(context, row, body),
  priorState: (_, { row }) => walletView(row),
  run: async (context, { path, body }) => walletView(await updateWallet(context, path.wallet_id, body)),
};

export const walletRpcProposal: PreparedProposal<'walletRpc', WalletRow, RpcPlan> = {
  intentType: 'RPC',
  hold,
  pathOf: ownPath,
  signers: ({ row }, { body }) => (ownersMethods.has(body.method) ? [] : signersOf(row)),
  async check(_, { row }, { body }) {
    if (row.custody_provider !== null)
      throw new ApiError('not_supported', 'a custodial wallet does not support rpc');
    // Decoding the request finds params that cannot be signed; anything that depends on a network is checked on
    // execution.
    await decodeUse(
      { chainType: row.chain_type as ChainType, address: row.address },
      { operation: 'walletRpc', request: body },
    );
  },
  prepare: (context, { path, body }) => prepareRpc(context, path.wallet_id, body),
  run: (context, { path, body }, planned) =>
    signWithWallet(context, { walletId: path.wallet_id, request: body, planned }),
};

export const transferProposal: PreparedProposal<'transferFromWallet', WalletRow, TransferPlan> = {
  intentType: 'TRANSFER',
  hold,
  pathOf: ownPath,
  signers: ({ row }) => signersOf(row),
  check: (_, { row }, { body }) => void readTransferBody(row, body),
  prepare: (context, { path, body }) => prepareTransfer(context, path.wallet_id, body),
  actionOf: ({ id }) => id,
  async run(context, { path, body }, planned) {
    const action = await transferFromWallet(context, { walletId: path.wallet_id, body, planned });
    return walletActionView(action) as TransferActionResponse;
  },
};
