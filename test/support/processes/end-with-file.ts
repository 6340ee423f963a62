import { afterAll } from 'vitest';
import { killLeftOver } from './left-over.ts';

// A vitest setup file. It runs before each test file, so its hook runs after those of the file.
afterAll(killLeftOver);
