import { writeFileSync } from 'node:fs';
import { renderInitialMigration, renderSandboxSchema } from './render-schema.ts';

// Run after an entity has changed: `node codegen/storage/write-schema.ts` renews the sandbox's schema. PostgreSQL
// gets a new file in migrations/ by hand; its test prints the statements that are missing. `--initial` writes
// the first migration anew, which is right only before the first release.
writeFileSync(new URL('generated/sandbox-schema.ts', import.meta.url), await renderSandboxSchema());
if (process.argv.includes('--initial')) {
  writeFileSync(new URL('migrations/0001-initial.ts', import.meta.url), await renderInitialMigration());
}
