import type { SqlEntityManager } from '@mikro-orm/sql';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { aliceKey } from '../../../mocks/authorization-keys.ts';
import { findAgreed, loadParties } from '../../../src/domain/access/owners/require-authorization.ts';
import {
  executeIntent,
  settleInterruptedIntents,
} from '../../../src/domain/requests/intents/execute-intent.ts';
import { reloadIntent } from '../../../src/domain/requests/intents/find-intent.ts';
import { type AnyProposal, proposalOf } from '../../../src/domain/requests/intents/proposals.ts';
import { ApiError } from '../../../src/errors.ts';
import type { IntentResponse, Wallet } from '../../../src/generated/schemas.ts';
import { afterCommitOf } from '../../support/after-commit.ts';
import { databaseKinds } from '../../support/databases.ts';
import { openOperations, type TestOperations } from '../../support/run-operations.ts';

// A request with external work after its commit, by a verb that represents those of the domain.
describe.each(databaseKinds)('%s', (kind) => {
  let operations: TestOperations;
  let intentId: string;
  beforeEach(async () => {
    operations = await openOperations(kind);
    const { body: wallet } = await operations.run('createWallet', {
      body: { chain_type: 'ethereum', owner: { public_key: aliceKey.publicKey } },
    });
    const message = { method: 'personal_sign', params: { encoding: 'utf-8', message: 'x' } };
    const { body: intent } = await operations.run('createWalletRpcIntent', {
      path: { wallet_id: (wallet as Wallet).id },
      body: message,
    });
    intentId = (intent as IntentResponse).intent_id;
  });
  afterEach(() => operations[Symbol.asyncDispose]());

  /** Executes the intent with `run` like its last signature does; returns the work for after the commit. */
  async function carry(run: AnyProposal['run']): Promise<{ finish(): Promise<void> }> {
    const commit = afterCommitOf(operations.database);
    await operations.database.orm.em.fork().transactional(async (em) => {
      const context = { ...operations.context(em as SqlEntityManager), ...commit };
      const intent = await reloadIntent(context, intentId);
      const input = { path: JSON.parse(intent.path_parameters), body: JSON.parse(intent.body!) };
      const proposal = { ...proposalOf('walletRpc'), run };
      const subject = await proposal.hold(context, input.path);
      const parties = await loadParties(context, { ownerId: subject.ownerId! }, intentId);
      const agreement = {
        intentId,
        publicKeys: [aliceKey.publicKey],
        userKeys: new Map<string, string>(),
        evidence: undefined,
      };
      const party = findAgreed(parties, agreement)!;
      const planned = { value: undefined };
      await executeIntent(context, { intent, proposal, subject, input, party, agreement, planned });
    });
    return commit;
  }

  async function look(): Promise<{ status: string; code?: string; events: string[] }> {
    const em = operations.database.orm.em.fork();
    const { status, action_result: result } = await reloadIntent({ em: em as SqlEntityManager }, intentId);
    const rows = await em.execute<{ type: string }[]>(
      'select type from outbox_events where resource_id = ? order by sequence',
      [intentId],
    );
    const { response_body: body } = JSON.parse(result ?? '{}') as { response_body?: { code?: string } };
    return {
      status,
      ...(body?.code === undefined ? {} : { code: body.code }),
      events: rows.map(({ type }) => type),
    };
  }

  const settleInterrupted = (lateMs: number) =>
    operations.database.orm.em.fork().transactional((em) => {
      const context = operations.context(em as SqlEntityManager);
      return settleInterruptedIntents({ ...context, nowMs: context.nowMs + lateMs });
    });

  test('is processing until that work is done, then executed', async () => {
    const { finish } = await carry(async (context) => {
      context.afterCommit(async () => undefined);
      return { method: 'personal_sign' };
    });
    expect(await look()).toEqual({ status: 'processing', events: ['intent.created'] });
    await finish();
    expect(await look()).toEqual({ status: 'executed', events: ['intent.created', 'intent.executed'] });
    expect(await settleInterrupted(120_000)).toBe(0);
  });

  test('fails when the external service refuses', async () => {
    const { finish } = await carry(async (context) => {
      context.afterCommit(async () => {
        throw new ApiError('transaction_broadcast_failure');
      });
      return { method: 'personal_sign' };
    });
    await finish();
    expect(await look()).toEqual({
      status: 'failed',
      code: 'transaction_broadcast_failure',
      events: ['intent.created', 'intent.failed'],
    });
  });

  test('is settled once with the stored result after a crash, and a refusal leaves no pending work', async () => {
    await carry(async (context) => {
      context.afterCommit(async () => undefined);
      return { method: 'personal_sign' };
    });
    expect(await settleInterrupted(60_000)).toBe(0);
    const settled = await Promise.all([settleInterrupted(60_001), settleInterrupted(60_001)]);
    expect(settled.sort()).toEqual([0, 1]);
    expect(await look()).toEqual({ status: 'executed', events: ['intent.created', 'intent.executed'] });
  });

  test('is settled at once when the process that executed it has died, and not when another one has', async () => {
    await carry(async (context) => {
      context.afterCommit(async () => undefined);
      return { method: 'personal_sign' };
    });
    const settleOf = (dead: string) =>
      operations.database.orm.em.fork().transactional((em) => {
        return settleInterruptedIntents(operations.context(em as SqlEntityManager), dead);
      });
    expect(await settleOf('another')).toBe(0);
    expect(await settleOf('test')).toBe(1);
    expect(await look()).toEqual({ status: 'executed', events: ['intent.created', 'intent.executed'] });
  });

  test('a refusal before the commit skips the work after it', async () => {
    let went = 0;
    const { finish } = await carry(async (context) => {
      context.afterCommit(async () => {
        went += 1;
      });
      throw new ApiError('policy_violation');
    });
    await finish();
    expect(await look()).toMatchObject({ status: 'failed', code: 'policy_violation' });
    expect(went).toBe(0);
  });

  test('an internal error rolls everything back, so the member can sign again', async () => {
    const broken = carry(async () => {
      throw new Error('the disk is full');
    });
    await expect(broken).rejects.toThrow('the disk is full');
    expect(await look()).toEqual({ status: 'pending', events: ['intent.created'] });
  });
});
