"""Writes the golden database of ../sqlite. Run it in this folder; it needs nothing but Python.

The bytes depend on the version of SQLite that Python was built with; the rows do not.
"""

import os
import sqlite3

PATH = "../sqlite/harbour.db"
if os.path.exists(PATH):
    os.remove(PATH)
db = sqlite3.connect(PATH)
db.executescript('''
PRAGMA page_size = 1024;
CREATE TABLE vessels (id INTEGER PRIMARY KEY, name TEXT NOT NULL, built DATE, berths INTEGER, draught REAL, licensed BOOLEAN, photo BLOB);
INSERT INTO vessels VALUES (1, 'Orrin Dawn', '1961-06-01', 120, 3.25, 1, x'ffd8ff');
INSERT INTO vessels VALUES (2, 'Skerry Queen', NULL, NULL, 2, 0, NULL);
CREATE TABLE log (at TIMESTAMP, vessel TEXT, body TEXT);
INSERT INTO log VALUES ('2024-03-12 10:30:00', 'Orrin Dawn', 'Left Port Ellin on the ebb.');
INSERT INTO log VALUES (1710288000, 'Skerry Queen', 'Stayed in port.');
CREATE TABLE fares (pier TEXT, class INTEGER, price REAL, PRIMARY KEY (pier, class)) WITHOUT ROWID;
INSERT INTO fares VALUES ('Port Ellin', 1, 12.5), ('Tarn', 2, 4);
CREATE TABLE "odd ""name""" ("a.b" TEXT);
INSERT INTO "odd ""name""" VALUES ('2024-01-31');
CREATE TABLE spare (x);
CREATE VIEW long_vessels AS SELECT name FROM vessels;
''')
db.commit()
db.execute("VACUUM")
db.close()
