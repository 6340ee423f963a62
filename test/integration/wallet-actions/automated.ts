import type { Tables } from '../../../src/domain/tables.ts';
import type { OperationId } from '../../../src/generated/operations.ts';
import type {
  WalletActionResponse,
  WalletAutomationExecutionResponse,
} from '../../../src/generated/schemas.ts';
import { followDeposits } from '../../../src/jobs/follow-deposits.ts';
import type { JobContext } from '../../../src/jobs/job-context.ts';
import { runAutomations } from '../../../src/jobs/run-automations.ts';
import { inUnitOf, unitsOf } from '../../../src/server/unit-of-work.ts';
import { type RunInput, runOnce, runToEnd, type TestOperations } from '../../support/run-operations.ts';
import { runJobs } from './run-jobs.ts';

/** Functions of tests of automations, on operations that are opened later. */
export function automated(operationsNow: () => TestOperations) {
  const inUnitOn = (served: TestOperations) => inUnitOf(unitsOf(served.database));

  async function run<T>(id: OperationId, input: RunInput): Promise<T> {
    const { status, body } = await operationsNow().run(id, input);
    if (status >= 400) throw new Error(`${id} answered ${JSON.stringify(body)}`);
    return body as T;
  }

  /** Records deposits until none is new. */
  async function detect(served = operationsNow()): Promise<void> {
    const job = followDeposits({ services: served.services, inUnit: inUnitOn(served) });
    await runToEnd(job);
  }

  /** Runs due executions once. */
  async function runDue(
    served = operationsNow(),
    inUnit: JobContext['inUnit'] = inUnitOn(served),
  ): Promise<void> {
    const openReader = async () => (await unitsOf(served.database)(false)).em;
    await runOnce(runAutomations({ services: served.services, inUnit, openReader }));
  }

  return {
    inUnitOn,
    run,
    detect,
    runDue,
    /** Blocks pass, and everything that is due is done. */
    async settle(): Promise<void> {
      for (let round = 0; round < 6; round += 1) {
        operationsNow().clock.nowMs += 70_000;
        await detect();
        await runDue();
        await runJobs(operationsNow());
      }
    },
    /** Oldest first. */
    async executionsOf(walletId: string): Promise<WalletAutomationExecutionResponse[]> {
      const query = { wallet_id: walletId };
      const { data } = await run<{ data: WalletAutomationExecutionResponse[] }>(
        'listWalletAutomationExecutions',
        { query },
      );
      return data.reverse();
    },
    async actionsOf<Action extends WalletActionResponse>(walletId: string): Promise<Action[]> {
      const path = { wallet_id: walletId };
      return (await run<{ data: Action[] }>('listWalletActions', { path })).data;
    },
    /** The payloads of all events, oldest first. */
    async events(): Promise<Record<string, unknown>[]> {
      const rows = await operationsNow()
        .database.orm.em.fork()
        .getKysely<Tables>()
        .selectFrom('outbox_events')
        .select('payload')
        .orderBy('sequence')
        .execute();
      return rows.map(({ payload }) => JSON.parse(payload));
    },
  };
}
