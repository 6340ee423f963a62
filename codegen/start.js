// `npm start`: builds the program if its inputs have changed, then runs it in this process. JavaScript, because Node
// takes a tenth of a second to load its remover of types, and a process of its own for the check takes another.

import { spawnSync } from 'node:child_process';
import { join } from 'node:path';
import { isBuilt } from './build-record.js';

const { status, signal } = isBuilt()
  ? { status: 0, signal: null }
  : spawnSync(process.execPath, [join(import.meta.dirname, 'build.ts')], { stdio: 'inherit' });
if (status === 0) await import('../dist/custos.js');
else process.exitCode = signal === null ? status : 1;
