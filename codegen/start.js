// `npm start`: builds the program if its inputs have changed, then runs it in this process. It is JavaScript, because
// Node takes a tenth of a second to load its type stripping. A separate process for the check would take another
// tenth.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { isBuilt } from './build-record.js';

const status = isBuilt()
  ? 0
  : spawnSync(process.execPath, [join(import.meta.dirname, 'build.ts')], { stdio: 'inherit' }).status;
if (status === 0) await import('../dist/custos.js');
// Null if a signal ended the build, or the build could not be started.
else process.exitCode = status ?? 1;
