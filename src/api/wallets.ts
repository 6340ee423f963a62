import { listWalletTransactions } from '../domain/money/transactions/list-transactions.ts';
import {
  type PlannedTransferRequest,
  planQuote,
  planTransferRequest,
  type QuotePlan,
  quoteWalletTransfer as quoteWalletTransferVerb,
  transferFromWallet as transferFromWalletVerb,
} from '../domain/money/wallet-actions/transfer.ts';
import { walletActionView } from '../domain/money/wallet-actions/wallet-action.ts';
import { exportWallet as exportWalletVerb } from '../domain/requests/wallet-rpc/export-wallet.ts';
import { planRpc, type RpcPlan } from '../domain/requests/wallet-rpc/plan-rpc.ts';
import { rawSignWithWallet, runWalletRpc } from '../domain/requests/wallet-rpc/wallet-rpc.ts';
import { getWalletBalance as getWalletBalanceVerb } from '../domain/wallets/balances/balances.ts';
import { createWalletsWithRecovery as createWalletsWithRecoveryVerb } from '../domain/wallets/recovery/wallet-recovery.ts';
import {
  type AuthenticatedUser,
  authenticateUser,
  authenticateWalletIntents as authenticateWalletIntentsVerb,
  authenticateWallets as authenticateWalletsVerb,
} from '../domain/wallets/user-keys/user-key.ts';
import {
  authoritiesOfNewWallets,
  authorityOfNewWallet,
  type NewAuthority,
} from '../domain/wallets/wallet-authorities/new-authority.ts';
import {
  attachAutomations,
  attachedAutomations,
  detachAutomations,
} from '../domain/wallets/wallet-automations/wallet-automation.ts';
import {
  createPlannedWallet,
  createWalletsBatch as createWalletsBatchVerb,
} from '../domain/wallets/wallets/create-wallet.ts';
import {
  findWallet,
  findWalletByAddress,
  listWallets as listWalletsVerb,
  walletView,
} from '../domain/wallets/wallets/find-wallet.ts';
import { beginImport, finishImport } from '../domain/wallets/wallets/import-wallet.ts';
import {
  archiveWallet as archiveWalletVerb,
  assignWalletEntity as assignWalletEntityVerb,
  updateWallet as updateWalletVerb,
} from '../domain/wallets/wallets/update-wallet.ts';
import { normalizeAddress } from '../engine/assets/addresses.ts';
import type { TransferActionResponse } from '../generated/schemas.ts';
import type { Handler, PlannedHandler } from '../ports/operation-context.ts';

export const authenticateWallets: PlannedHandler<'authenticateWallets', AuthenticatedUser> = {
  plan: ({ body }, context) => authenticateUser(context, body.user_jwt),
  run: ({ body }, context, planned) => authenticateWalletsVerb(context, { body, planned }),
};

export const authenticateWalletIntents: PlannedHandler<'authenticateWalletIntents', AuthenticatedUser> = {
  plan: ({ body }, context) => authenticateUser(context, body.user_jwt),
  run: ({ body }, context, planned) => authenticateWalletIntentsVerb(context, { body, planned }),
};

export const initWalletImport: Handler<'initWalletImport'> = ({ body }, context) =>
  beginImport(context, body);

export const submitWalletImport: Handler<'submitWalletImport'> = async ({ body }, context) =>
  walletView(await finishImport(context, body));

export const exportWallet: Handler<'exportWallet'> = ({ path, body }, context) =>
  exportWalletVerb(context, path.wallet_id, body);

export const rawSignWallet: Handler<'rawSignWallet'> = ({ path, body }, context) =>
  rawSignWithWallet(context, path.wallet_id, body);

export const walletRpc: PlannedHandler<'walletRpc', RpcPlan> = {
  plan: ({ path, body }, context) => planRpc(context, path.wallet_id, body),
  run: ({ path, body }, context, planned) =>
    runWalletRpc(context, { walletId: path.wallet_id, request: body, planned }),
};

export const listWallets: Handler<'listWallets'> = async ({ query }, context) => {
  const filter = {
    chainType: query.chain_type,
    userId: query.user_id,
    authorizationKey: query.authorization_key,
    externalId: query.external_id,
    address: query.address,
    entityId: query.entity_id,
    includeArchived: query.include_archived,
  };
  const { wallets, nextCursor } = await listWalletsVerb(context, filter, query);
  return { data: wallets.map(walletView), next_cursor: nextCursor };
};

export const createWallet: PlannedHandler<'createWallet', NewAuthority> = {
  plan: ({ body }, context) => authorityOfNewWallet(context, body),
  run: async ({ body }, context, planned) => walletView(await createPlannedWallet(context, body, planned)),
};

export const getWalletByAddress: Handler<'getWalletByAddress'> = async ({ body }, context) => {
  const address = normalizeAddress(body.address);
  return walletView(await findWalletByAddress(context, address, { includeArchived: body.include_archived }));
};

export const createWalletsBatch: PlannedHandler<'createWalletsBatch', readonly NewAuthority[]> = {
  plan: ({ body }, context) => authoritiesOfNewWallets(context, body.wallets),
  run: async ({ body }, context, planned) => ({
    results: await createWalletsBatchVerb(context, body.wallets, planned),
  }),
};

export const getWallet: Handler<'getWallet'> = async ({ path, query }, context) => {
  const wallet = await findWallet(context, path.wallet_id, { includeArchived: query.include_archived });
  const view = walletView(wallet);
  if (!wallet.has_automations) return view;
  const automations = await attachedAutomations(context, wallet);
  return automations.length === 0 ? view : { ...view, automations };
};

export const updateWallet: Handler<'updateWallet'> = async ({ path, body }, context) =>
  walletView(await updateWalletVerb(context, path.wallet_id, body));

export const archiveWallet: Handler<'archiveWallet'> = async ({ path }, context) =>
  walletView(await archiveWalletVerb(context, path.wallet_id));

export const attachWalletAutomations: Handler<'attachWalletAutomations'> = async (
  { path, body },
  context,
) => ({
  data: await attachAutomations(context, path.wallet_id, body),
});

export const detachWalletAutomations: Handler<'detachWalletAutomations'> = async (
  { path, body },
  context,
) => {
  await detachAutomations(context, path.wallet_id, body);
  return { success: true };
};

export const getWalletBalance: Handler<'getWalletBalance'> = async ({ path, query }, context) =>
  getWalletBalanceVerb(context, path.wallet_id, query);

export const assignWalletEntity: Handler<'assignWalletEntity'> = ({ path, body }, context) =>
  assignWalletEntityVerb(context, path.wallet_id, body);

export const getWalletTransactions: Handler<'getWalletTransactions'> = ({ path, query }, context) =>
  listWalletTransactions(context, path.wallet_id, query);

export const transferFromWallet: PlannedHandler<'transferFromWallet', PlannedTransferRequest> = {
  plan: ({ path, body }, context) => planTransferRequest(context, path.wallet_id, body),
  run: async ({ path, body }, context, planned) => {
    const action = await transferFromWalletVerb(context, {
      walletId: path.wallet_id,
      body,
      planned,
    });
    return walletActionView(action) as TransferActionResponse;
  },
};

export const quoteWalletTransfer: PlannedHandler<'quoteWalletTransfer', QuotePlan> = {
  plan: ({ path, body }, context) => planQuote(context, path.wallet_id, body),
  run: ({ path, body }, context, planned) =>
    quoteWalletTransferVerb(context, { walletId: path.wallet_id, body, planned }),
};

export const createWalletsWithRecovery: Handler<'createWalletsWithRecovery'> = ({ body }, context) =>
  createWalletsWithRecoveryVerb(context, body);
