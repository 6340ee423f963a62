/** The part of `pg.Pool` that is used here. */
export interface RateLevelsPool {
  query(statement: { text: string; values?: unknown[]; name?: string }): Promise<{ rows: unknown[] }>;
  /** Whether the pool was closed. */
  readonly ended?: boolean;
}

/** The points that a process has granted to a key, and how many points are restored per second. */
interface GrantedPoints {
  readonly key: string;
  readonly points: number;
  readonly perSecond: number;
}

// The table is unlogged, so a commit waits neither for the disk nor for a standby. All processes lock the rows in the
// order of their keys, so they cannot deadlock. Levels fall by the clock of the database.
const settle = `
insert into rate_levels as known (key, level, per_second, at)
select key, points, per_second, clock_timestamp()
from unnest($1::text[], $2::double precision[], $3::double precision[]) as granted (key, points, per_second)
order by key
on conflict (key) do update set
  level = greatest(0, excluded.level
    + greatest(0, known.level - greatest(0, extract(epoch from excluded.at - known.at)) * known.per_second)),
  per_second = excluded.per_second,
  at = excluded.at
returning key, level`;

const dropEmpty = `
delete from rate_levels where key in (
  select key from rate_levels
  where level <= extract(epoch from clock_timestamp() - at) * per_second
  limit 10000 for update skip locked)`;

/** Adds the points to the shared levels in one statement. Returns the new levels by key. */
export async function settleRateLevels(
  pool: RateLevelsPool,
  granted: readonly GrantedPoints[],
): Promise<ReadonlyMap<string, number>> {
  const { rows } = await pool.query({
    name: 'settle_rate_levels',
    text: settle,
    values: [
      granted.map(({ key }) => key),
      granted.map(({ points }) => points),
      granted.map(({ perSecond }) => perSecond),
    ],
  });
  const levels = rows as readonly { readonly key: string; readonly level: number }[];
  return new Map(levels.map(({ key, level }) => [key, Number(level)]));
}

/** Deletes levels that have fallen to zero. */
export async function dropEmptyRateLevels(pool: RateLevelsPool): Promise<void> {
  await pool.query({ name: 'drop_empty_rate_levels', text: dropEmpty });
}
