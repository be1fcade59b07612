"""Writes elsewhere/zotero/library/zotero.sqlite: two works, an attachment and one that was thrown away, in the tables
of Zotero's own database that say something about works."""

import sqlite3
from pathlib import Path

path = Path(__file__).resolve().parents[1] / "elsewhere/zotero/library/zotero.sqlite"
path.unlink(missing_ok=True)
database = sqlite3.connect(path)
database.executescript(
    """
pragma page_size = 512;
create table itemTypes(itemTypeID integer primary key, typeName text);
create table items(itemID integer primary key, itemTypeID int, dateAdded timestamp, key text);
create table fields(fieldID integer primary key, fieldName text);
create table itemDataValues(valueID integer primary key, value);
create table itemData(itemID int, fieldID int, valueID int);
create table creators(creatorID integer primary key, firstName text, lastName text, fieldMode int);
create table creatorTypes(creatorTypeID integer primary key, creatorType text);
create table itemCreators(itemID int, creatorID int, creatorTypeID int, orderIndex int);
create table tags(tagID integer primary key, name text);
create table itemTags(itemID int, tagID int, type int);
create table itemAttachments(itemID integer primary key, parentItemID int, linkMode int, contentType text, path text);
create table deletedItems(itemID integer primary key, dateDeleted);
create table version(schema text, version int);
insert into version values ('userdata', 120);
insert into itemTypes values (1, 'journalArticle'), (2, 'book'), (3, 'attachment'), (4, 'note');
insert into items values (1, 1, '2022-01-09 10:00:00', '7XK2P9QD'), (2, 2, '2022-01-09 10:00:00', '9QRT5LMN'),
  (3, 3, '2022-01-09 10:00:00', 'AB12CD34'), (4, 2, '2022-01-09 10:00:00', 'DELETED1');
insert into fields values (1, 'title'), (2, 'abstractNote'), (3, 'date'), (4, 'DOI'), (5, 'url'), (6, 'publicationTitle');
insert into itemDataValues values (1, 'Tides of the inner harbour'),
  (2, 'Forty years of gauges show that the inner harbour fills an hour later than the tables say.'),
  (3, '2021-03-04 4 March 2021'), (4, '10.5555/tide.7'), (5, 'Harbour Studies'), (6, 'Slate roofs'),
  (7, '2019-00-00 2019'), (8, 'https://slate.example/roofs'), (9, 'Thrown away');
insert into itemData values (1, 1, 1), (1, 2, 2), (1, 3, 3), (1, 4, 4), (1, 6, 5), (2, 1, 6), (2, 3, 7), (2, 5, 8),
  (4, 1, 9);
insert into creators values (1, 'Ana', 'Reis', 0), (2, 'Tom', 'Harrow', 0), (3, '', 'Quarrytown Heritage Trust', 1);
insert into creatorTypes values (1, 'author'), (2, 'editor');
insert into itemCreators values (1, 2, 1, 1), (1, 1, 1, 0), (2, 3, 1, 0);
insert into tags values (1, 'tides'), (2, 'gauges');
insert into itemTags values (1, 1, 0), (1, 2, 0);
insert into itemAttachments values (3, 1, 0, 'application/pdf', 'storage:Reis and Harrow - 2021 - Tides.pdf');
insert into deletedItems values (4, '2022-02-02');
"""
)
database.commit()
database.close()
