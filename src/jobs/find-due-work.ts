import { type RawBuilder, sql } from 'kysely';
import { prepareQuery } from '../domain/prepared-query.ts';
import type { JobContext } from './job-context.ts';
import type { Job } from './runner.ts';

/*
 * One statement finds out which jobs have something to do, so that an idle database gets one statement instead of one
 * or several for each job. All other jobs with due times are idle until this job wakes them.
 *
 * After a change by this process, and while anything is due, the look-ups are a second apart. At other times they are
 * `IDLE_MS` apart, and each also counts the work that becomes due until the next one. So no work of this process starts
 * later than with look-ups every second.
 *
 * CHOICE: work that another process has committed is found within `IDLE_MS`, in case that process does not do it
 * itself, for example because it was killed. The claims of a killed process are released later than that, after five
 * seconds.
 */

export const FIND_DUE_WORK = 'find-due-work';

const EVERY_MS = 1_000;
/** CHOICE: the longest time until work is found that another process or a command has committed. */
const IDLE_MS = 2_000;

/**
 * CHOICE: the longest pause of a job that `find-due-work` wakes. It is a precaution: if a mistake keeps the job from
 * being woken, the job is late, but not forgotten.
 */
export const WOKEN_IDLE_MS = 5 * 60_000;

/**
 * For each job, queries that return a row if the job may have something to do by `byMs`. Each query is one look-up in
 * an index.
 */
const dueWork = (byMs: number): Readonly<Record<string, readonly RawBuilder<unknown>[]>> => {
  const steps = sql`select 1 from wallet_action_steps where next_check_at_ms <= ${byMs}`;
  return {
    'follow-transactions': [sql`select 1 from transactions where next_check_at_ms <= ${byMs}`],
    'read-effects': [steps],
    'follow-external-steps': [steps],
    'follow-fiat-deposits': [
      sql`select 1 from fiat_positions`,
      sql`select 1 from fiat_deposit_accounts where next_check_at_ms <= ${byMs}`,
      sql`select 1 from fiat_deposits where next_check_at_ms <= ${byMs}`,
    ],
    'run-automations': [sql`select 1 from wallet_automation_executions where next_run_at_ms <= ${byMs}`],
    'follow-fiat-customers': [sql`select 1 from fiat_customers where next_check_at_ms <= ${byMs}`],
    'keep-cards': [sql`select 1 from cards where next_check_at_ms <= ${byMs}`],
    'run-wallet-actions': [sql`select 1 from wallet_actions where status = 'pending'`],
    'deliver-events': [
      sql`select 1 from outbox_events where fanned_out_at_ms is null`,
      sql`select 1 from webhook_endpoints where next_due_at_ms <= ${byMs} and status = 'enabled'`,
    ],
    'expire-intents': [
      sql`select 1 from intents where status = 'pending' and expires_at_ms <= ${byMs}`,
      sql`select 1 from intents where status = 'processing' and awaited_action_id is null`,
    ],
    'sequence-audit': [
      sql`select 1 from audit_pending`,
      sql`select 1 from audit_checkpoints
        where note is null and size = (select max(size) from audit_checkpoints)`,
    ],
  };
};

/**
 * The query is prepared, because building and planning it takes longer than running it, and each cell gets it every two
 * seconds.
 */
const findJobs = prepareQuery<{ byMs: number }, Readonly<Record<string, boolean | number>>>(
  (database, { byMs }) => {
    const columns = Object.entries(dueWork(byMs)).map(
      ([job, queries]) =>
        sql`${sql.join(
          queries.map((query) => sql`exists (${query})`),
          sql` or `,
        )} as ${sql.ref(job)}`,
    );
    const query = sql<Readonly<Record<string, boolean | number>>>`select ${sql.join(columns)}`;
    return { compile: () => query.compile(database) };
  },
);

/** Creates the job that wakes the jobs with due work. */
export function findDueWork({
  services,
  inUnit,
  wakeSoon,
}: JobContext & { readonly wakeSoon: (job: string) => void }): Job {
  let isAnyDue = false;
  return {
    name: FIND_DUE_WORK,
    everyMs: EVERY_MS,
    idleMs: IDLE_MS,
    isIdle: () => !isAnyDue,
    // All idle jobs depend on this one. After an outage, they must not wait for its longest pause.
    keepsPace: true,
    isUpkeep: true,
    async run() {
      const { rows } = await inUnit((em) => findJobs(em, { byMs: services.clock.now() + IDLE_MS }));
      const jobs = Object.entries(rows[0]!).flatMap(([job, isDue]) => (isDue ? [job] : []));
      isAnyDue = jobs.length > 0;
      for (const job of jobs) wakeSoon(job);
      return false;
    },
  };
}
