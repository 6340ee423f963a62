import { TransactionEntity } from '../../domain/money/transactions/transaction.entity.ts';
import { ApiError, notFound } from '../../errors.ts';
import type { Handler } from '../control-plane.ts';
import type { SandboxTransactionEffect } from '../generated/schemas.ts';

/** The chains that have each effect, by the beginning of their CAIP-2 id. */
const chainsWith: Readonly<Record<SandboxTransactionEffect, RegExp>> = {
  drop: /./,
  replace: /^eip155:/,
  revert: /^(eip155|solana|tron):/,
};

export const run: Handler<'steerTransaction'> = async ({ path, body }, { chains, read, runDueJobs }) => {
  const { effect } = body;
  await runDueJobs();
  const fields = ['id', 'caip2', 'status', 'transactionHash', 'userOperationHash'] as const;
  const found = await read((em) => em.findOne(TransactionEntity, { id: path.transaction_id }, { fields }));
  if (found === null) throw notFound('Transaction');
  const { id, caip2, status, transactionHash: hash, userOperationHash } = found;
  if (hash === null || userOperationHash !== null) {
    throw new ApiError(
      'invalid_state',
      'the transaction is a user operation, which only its bundler includes',
    );
  }
  if (!chains.has(caip2) || !chainsWith[effect].test(caip2)) {
    throw new ApiError('invalid_state', `transactions on \`${caip2}\` cannot be made to \`${effect}\``);
  }
  if (!(await chains.steer(caip2, hash, effect))) {
    throw new ApiError('invalid_state', `no pool contains the transaction, which is \`${status}\``);
  }
  await runDueJobs();
  return { transaction_id: id, transaction_hash: hash, effect };
};
