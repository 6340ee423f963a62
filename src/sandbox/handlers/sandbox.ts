import { listEveryWalletAction } from '../../domain/money/wallet-actions/wallet-action.ts';
import { notFound } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import type { Operations } from '../generated/operations.ts';

export const resetSandbox: Handler<'resetSandbox'> = async (_input, context) => {
  await context.reset();
  return { reset: true, now_ms: context.clock.now() };
};

type Document = Operations['getControlDocument']['response'];

export const getControlDocument: Handler<'getControlDocument'> = async (_input, { document }) =>
  document() as Document;

export const listDivergences: Handler<'listDivergences'> = async ({ query: { operation } }) => {
  // Loaded on demand, because it contains the texts of all decisions.
  const { divergences, sharedDecisions, simulatedParts } = await import('../generated/divergences.ts');
  const found = divergences.filter((each) => operation === undefined || each.operation === operation);
  if (found.length === 0) throw notFound('operation');
  return {
    data: found.map(({ operation, simulated, decisions }) => ({
      operation,
      simulated: simulatedParts.filter(({ name }) => simulated.includes(name)),
      decisions: [...decisions],
    })),
    shared: [...sharedDecisions],
  };
};

export const listSandboxActions: Handler<'listSandboxActions'> = async ({ query }, { read }) => {
  const { page, nextCursor } = await read((em) => listEveryWalletAction(em, query));
  return {
    data: page.map(({ id, appId, walletId, type, status, createdAtMs, endedAtMs }) => ({
      ...{ id, app_id: appId, wallet_id: walletId, type, status },
      ...{ created_at_ms: createdAtMs, ended_at_ms: endedAtMs },
    })),
    next_cursor: nextCursor,
  };
};
