import { listWalletTransactions } from '../domain/money/transactions/wallet-transactions.ts';
import * as walletActions from '../domain/money/wallet-actions/transfer.ts';
import {
  planQuote,
  planTransferRequest,
  type QuotePlan,
  type TransferPlan,
} from '../domain/money/wallet-actions/transfer.ts';
import { walletActionView } from '../domain/money/wallet-actions/wallet-action.ts';
import * as exportWalletVerbs from '../domain/requests/wallet-rpc/export-wallet.ts';
import { planRpc, type RpcPlan } from '../domain/requests/wallet-rpc/plan-rpc.ts';
import { rawSignWithWallet, runWalletRpc } from '../domain/requests/wallet-rpc/wallet-rpc.ts';
import * as balances from '../domain/wallets/balances/balances.ts';
import * as recovery from '../domain/wallets/recovery/wallet-recovery.ts';
import * as userKeys from '../domain/wallets/user-keys/user-key.ts';
import { type AuthenticatedUser, authenticateUser } from '../domain/wallets/user-keys/user-key.ts';
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
import * as createWalletVerbs from '../domain/wallets/wallets/create-wallet.ts';
import { createPlannedWallet } from '../domain/wallets/wallets/create-wallet.ts';
import * as findWalletVerbs from '../domain/wallets/wallets/find-wallet.ts';
import { findWallet, findWalletByAddress, walletView } from '../domain/wallets/wallets/find-wallet.ts';
import { beginImport, finishImport } from '../domain/wallets/wallets/import-wallet.ts';
import * as updateWalletVerbs from '../domain/wallets/wallets/update-wallet.ts';
import { normalizeAddress } from '../engine/assets/addresses.ts';
import type { TransferActionResponse } from '../generated/schemas.ts';
import type { Handler, PlannedHandler } from '../ports/operation-context.ts';

export const authenticateWallets: PlannedHandler<'authenticateWallets', AuthenticatedUser> = {
  plan: ({ body }, context) => authenticateUser(context, body.user_jwt),
  run: ({ body }, context, planned) => userKeys.authenticateWallets(context, { body, planned }),
};

export const authenticateWalletIntents: PlannedHandler<'authenticateWalletIntents', AuthenticatedUser> = {
  plan: ({ body }, context) => authenticateUser(context, body.user_jwt),
  run: ({ body }, context, planned) => userKeys.authenticateWalletIntents(context, { body, planned }),
};

export const initWalletImport: Handler<'initWalletImport'> = ({ body }, context) =>
  beginImport(context, body);

export const submitWalletImport: Handler<'submitWalletImport'> = async ({ body }, context) =>
  walletView(await finishImport(context, body));

export const exportWallet: Handler<'exportWallet'> = ({ path, body }, context) =>
  exportWalletVerbs.exportWallet(context, path.wallet_id, body);

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
  const { wallets, nextCursor } = await findWalletVerbs.listWallets(context, filter, query);
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
    results: await createWalletVerbs.createWalletsBatch(context, body.wallets, planned),
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
  walletView(await updateWalletVerbs.updateWallet(context, path.wallet_id, body));

export const archiveWallet: Handler<'archiveWallet'> = async ({ path }, context) =>
  walletView(await updateWalletVerbs.archiveWallet(context, path.wallet_id));

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
  balances.getWalletBalance(context, path.wallet_id, query);

export const assignWalletEntity: Handler<'assignWalletEntity'> = ({ path, body }, context) =>
  updateWalletVerbs.assignWalletEntity(context, path.wallet_id, body);

export const getWalletTransactions: Handler<'getWalletTransactions'> = ({ path, query }, context) =>
  listWalletTransactions(context, path.wallet_id, query);

export const transferFromWallet: PlannedHandler<'transferFromWallet', TransferPlan> = {
  plan: ({ path, body }, context) => planTransferRequest(context, path.wallet_id, body),
  run: async ({ path, body }, context, planned) => {
    const action = await walletActions.transferFromWallet(context, {
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
    walletActions.quoteWalletTransfer(context, { walletId: path.wallet_id, body, planned }),
};

export const createWalletsWithRecovery: Handler<'createWalletsWithRecovery'> = ({ body }, context) =>
  recovery.createWalletsWithRecovery(context, body);
