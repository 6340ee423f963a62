import { afterAll } from 'vitest';
import { returnDatabases } from './borrow-database.ts';

// A vitest setup file, run before each test file: its hook runs after those of the file.
afterAll(returnDatabases);
