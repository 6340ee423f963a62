import type { Database } from '../../src/storage/open-database.ts';
import { record, triggeredEventIds } from './record-answers.ts';

/** Records the types of the events in a database that a test is done with. */
export async function recordEvents({ orm }: Pick<Database, 'orm'>): Promise<void> {
  const triggered = triggeredEventIds();
  const isRecordedByAnOperation =
    triggered.length === 0 ? '' : ` where id not in (${triggered.map(() => '?').join(', ')})`;
  const select = `select distinct type from outbox_events${isRecordedByAnOperation}`;
  // Tests of a database that fails leave nothing to read.
  const events = await orm.em
    .fork()
    .execute<{ type: string }[]>(select, [...triggered])
    .catch(() => []);
  for (const { type } of events) record(`event ${type}`);
}
