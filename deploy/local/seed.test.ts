import { expect, test } from '@jest/globals';
import { refuseRemoteDemoData } from './seed.ts';

test.each([
  'postgres://owner@localhost/platform',
  'postgres://owner@127.0.0.1:5433/platform',
  'postgres://owner@[::1]/platform',
  'postgres:///platform?host=/run/postgresql',
])('allows demo data in %s', (url) => {
  expect(() => refuseRemoteDemoData(url)).not.toThrow();
});

test.each([
  'postgres://owner@db.example.com/platform',
  'postgres://owner@127.0.0.1.example.com/platform',
  'postgres://owner@10.0.0.1/platform',
  'postgres://owner@localhost/platform?host=db.example.com',
])('refuses demo data in %s', (url) => {
  expect(() => refuseRemoteDemoData(url)).toThrow(/^DATABASE_URL names \S+: npm start adds demo accounts/);
});
