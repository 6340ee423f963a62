import type { SchemaMigration } from './schema-migration.ts';

export const findNumbersInSets: SchemaMigration = {
  name: '0035-find-numbers-in-sets',
  postgres: `
create index "condition_set_items_by_number" on "condition_set_items" ("condition_set_id", (case when ltrim(rtrim(value_lower, '.'), '.') <> value_lower or value_lower in ('', '-', '0x') then '.' || value_lower when substr(value_lower, 1, 2) = '0x' then '0x0' || ltrim(substr(value_lower, 3), '0') when substr(value_lower, 1, 1) = '-' then '-0' || ltrim(substr(value_lower, 2), '0') when replace(value_lower, '.', '') <> value_lower then rtrim('0' || ltrim(value_lower, '0'), '0') else '0' || ltrim(value_lower, '0') end));
`,
  sqlite: `
create index "condition_set_items_by_number" on "condition_set_items" ("condition_set_id", (case when ltrim(rtrim(value_lower, '.'), '.') <> value_lower or value_lower in ('', '-', '0x') then '.' || value_lower when substr(value_lower, 1, 2) = '0x' then '0x0' || ltrim(substr(value_lower, 3), '0') when substr(value_lower, 1, 1) = '-' then '-0' || ltrim(substr(value_lower, 2), '0') when replace(value_lower, '.', '') <> value_lower then rtrim('0' || ltrim(value_lower, '0'), '0') else '0' || ltrim(value_lower, '0') end));
`,
};
