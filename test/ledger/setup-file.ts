import { join, relative } from 'node:path';
import { pathToFileURL } from 'node:url';
import { expect } from 'vitest';
import { startRecording } from './record-answers.ts';

// A vitest setup file, run before each test file: what this process and those it starts answer is recorded under the
// test file's name.
const root = join(import.meta.dirname, '..', '..');
const { TEST_LEDGER: folder = '', NODE_OPTIONS: options = '' } = process.env;
process.env.TEST_LEDGER_FILE = relative(root, expect.getState().testPath ?? '');
const recorder = `--import=${pathToFileURL(join(folder, 'record-answers.mjs'))}`;
if (!options.includes(recorder)) process.env.NODE_OPTIONS = `${options} ${recorder}`.trim();
startRecording();
