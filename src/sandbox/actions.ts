import { listEvery } from '../domain/list-every.ts';
import { WalletActionEntity } from '../domain/money/wallet-actions/wallet-action.entity.ts';
import { loadSteps, stepView } from '../domain/money/wallet-actions/wallet-action-steps.ts';
import { chainOfCaip2 } from '../engine/assets/known-chains.ts';
import type { ControlContext, ControlInput } from './control-plane.ts';
import type { SandboxAction } from './generated/schemas.ts';
import { walletNames } from './names.ts';
import { amountView, assetTerms, type Terms, tokenOf } from './transactions.ts';

/** Returns one page of the wallet actions of all apps. */
export async function listActionViews(
  query: ControlInput<'listSandboxActions'>['query'],
  context: ControlContext,
): Promise<{ data: SandboxAction[]; next_cursor: string | null }> {
  const { page, nextCursor, steps, wallets } = await context.read(async (em) => {
    const found = await listEvery(em, WalletActionEntity, query);
    const ids = found.page.map(({ id }) => id);
    const walletIds = found.page.map(({ walletId }) => walletId);
    return {
      ...found,
      steps: await loadSteps({ em }, ids),
      wallets: await walletNames(em, walletIds),
    };
  });
  const actions = page.map((row) => {
    const shown = (steps.get(row.id) ?? []).map((step) => stepView(step) as object as StepFields);
    // The amount of a swap is only known when the swap ends.
    const details = { ...JSON.parse(row.details), ...JSON.parse(row.outcome ?? '{}') } as Details;
    return { row, steps: shown, details, caip2: shown[0]?.caip2 };
  });
  const swapped = actions.flatMap(({ details, caip2 }) =>
    details.input_token === undefined || caip2 === undefined
      ? []
      : [{ caip2, tokenAddress: tokenOf(details.input_token) }],
  );
  const terms = await assetTerms(swapped, context);
  return {
    data: actions.map(({ row, steps: own, details, caip2 }) => ({
      ...{ id: row.id, app_id: row.appId, wallet_id: row.walletId },
      wallet_name: wallets.get(row.walletId) ?? null,
      ...{ type: row.type, status: row.status, ...spentBy(details, caip2, terms) },
      chain: details.source_chain ?? (caip2 === undefined ? null : (chainOfCaip2(caip2)?.name ?? caip2)),
      to: details.destination_address ?? details.vault_address ?? null,
      steps: own.map((step) => ({
        ...{ type: step.type, status: step.status },
        transaction_hash: hashFields.map((name) => step[name]).find((hash) => hash != null) ?? null,
      })),
      request_id: context.requests?.causeOf(row.id) ?? null,
      ...{ created_at_ms: row.createdAtMs, ended_at_ms: row.endedAtMs },
    })),
    next_cursor: nextCursor,
  };
}

const hashFields = [
  'transaction_hash',
  'transaction_signature',
  'transaction_id',
  'bundle_transaction_hash',
] as const;

/** The fields of a step. Its type determines which of them it has. */
type StepFields = { readonly type: string; readonly status: string; readonly caip2?: string } & {
  readonly [Name in (typeof hashFields)[number]]?: string | null;
};

/**
 * The fields that an action stores. Its type determines which of them it has. Amounts are decimal, those of swaps in
 * base units.
 */
interface Details {
  readonly source_amount?: string;
  readonly source_asset?: string;
  readonly source_asset_address?: string;
  readonly source_chain?: string;
  readonly destination_address?: string;
  readonly amount?: string;
  readonly asset?: string;
  readonly asset_address?: string;
  readonly vault_address?: string;
  readonly input_token?: string;
  readonly input_amount?: string | null;
}

function spentBy(
  details: Details,
  caip2: string | undefined,
  terms: Terms,
): { amount: string | null; asset: string | null } {
  const { input_token: token, input_amount: input } = details;
  if (token !== undefined && caip2 !== undefined) {
    const moved = { tokenAddress: tokenOf(token), rawAmount: BigInt(input ?? 0) };
    const { amount, asset } = amountView(caip2, moved, terms);
    return { amount: input == null ? null : amount, asset };
  }
  const name = details.source_asset ?? details.asset;
  const address = details.source_asset_address ?? details.asset_address ?? null;
  return { amount: details.source_amount ?? details.amount ?? null, asset: name?.toUpperCase() ?? address };
}
